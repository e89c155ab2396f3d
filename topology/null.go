package topology

import "reflect"

// nullTest returns the test whether a value is a nil pointer or a nil byte slice, which stand for no value, or nil if the
// type is neither.
func nullTest[T any]() func(T) bool {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer && t != reflect.TypeFor[[]byte]() {
		return nil
	}
	return func(v T) bool { return reflect.ValueOf(&v).Elem().IsNil() }
}
