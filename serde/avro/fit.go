package avro

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"

	hamba "github.com/hamba/avro/v2"
)

var (
	ratType             = reflect.TypeFor[big.Rat]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	unionConverterType  = reflect.TypeFor[hamba.UnionConverter]()
)

// fits returns an error if data of the schema cannot be decoded into typ. The
// library finds that out record by record; and in some cases it does not find
// out but writes a pointer over a struct, or compiles without end.
func fits(schema hamba.Schema, typ reflect.Type) error {
	return fitter{}.fit(schema, typ)
}

type pairing struct {
	schema hamba.Schema
	typ    reflect.Type
}

// fitter holds the pairs that are checked or being checked, which ends
// recursion.
type fitter map[pairing]bool

func (f fitter) fit(schema hamba.Schema, typ reflect.Type) error {
	schema = resolve(schema)
	pair := pairing{schema, typ}
	if f[pair] {
		return nil
	}
	f[pair] = true
	if typ.Kind() == reflect.Interface {
		if typ.NumMethod() > 0 {
			return misfit(schema, typ, "the only interface that can be decoded into is any")
		}
		return nil // maps, slices and basic types, chosen by the schema
	}
	switch s := schema.(type) {
	case *hamba.RecordSchema:
		return f.record(s, typ)
	case *hamba.ArraySchema:
		if typ.Kind() != reflect.Slice {
			return misfit(s, typ, "")
		}
		return f.fit(s.Items(), typ.Elem())
	case *hamba.MapSchema:
		if typ.Kind() != reflect.Map || !isText(typ.Key()) {
			return misfit(s, typ, "")
		}
		return f.fit(s.Values(), typ.Elem())
	case *hamba.UnionSchema:
		return f.union(s, typ)
	default:
		return leaf(s, typ)
	}
}

func (f fitter) record(s *hamba.RecordSchema, typ reflect.Type) error {
	switch {
	case typ.Kind() == reflect.Pointer:
		return f.fit(s, typ.Elem())
	case isGenericMap(typ):
		return nil
	case typ.Kind() != reflect.Struct:
		return misfit(s, typ, "")
	}
	for _, field := range s.Fields() {
		ft := fieldType(typ, append([]string{field.Name()}, field.Aliases()...))
		err := error(nil)
		if ft == nil {
			err = skippable(field.Type(), map[hamba.Schema]bool{})
		} else {
			err = f.fit(field.Type(), ft)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", field.Name(), err)
		}
	}
	return nil
}

func (f fitter) union(s *hamba.UnionSchema, typ reflect.Type) error {
	switch {
	case typ.Implements(unionConverterType), reflect.PointerTo(typ).Implements(unionConverterType), isGenericMap(typ):
		return nil
	case !s.Nullable():
		return misfit(s, typ, "use map[string]any, or a type with FromAny and ToAny")
	case typ.Kind() == reflect.Pointer:
		_, i := s.Indices()
		return f.fit(s.Types()[i], typ.Elem())
	case typ.Kind() == reflect.Slice:
		_, i := s.Indices()
		return f.fit(s.Types()[i], typ)
	default:
		return misfit(s, typ, "use a pointer")
	}
}

// leaf checks a primitive, enum or fixed schema by decoding its shortest datum.
func leaf(schema hamba.Schema, typ reflect.Type) error {
	if typ.Kind() == reflect.Struct && typ.ConvertibleTo(ratType) {
		return misfit(schema, typ, "the library cannot decode into a big.Rat; use *big.Rat, or **big.Rat for a nullable one")
	}
	t := schema.Type()
	if t == hamba.Fixed && typ.Kind() == reflect.Uint64 {
		return misfit(schema, typ, "the library's codec is not safe for concurrent use; use [8]byte")
	}
	text := typ.Implements(textUnmarshalerType) || reflect.PointerTo(typ).Implements(textUnmarshalerType)
	if text && (t == hamba.String || t == hamba.Enum) {
		return nil // the type decides itself what text it takes
	}
	data := bytes.NewReader(shortest(schema))
	reader := hamba.NewReader(data, readAhead, hamba.WithReaderConfig(newConfig()))
	reader.ReadVal(schema, reflect.New(typ).Interface())
	if reader.Error != nil {
		return misfit(schema, typ, "")
	}
	return nil
}

// shortest returns a shortest datum of a primitive, enum or fixed schema: the
// number 0, the empty string, the first symbol.
func shortest(schema hamba.Schema) []byte {
	switch s := schema.(type) {
	case *hamba.FixedSchema:
		return make([]byte, s.Size())
	case *hamba.EnumSchema:
		return []byte{0}
	}
	switch sh := primitives[schema.Type()]; sh.kind {
	case kindNull:
		return nil
	case kindFixed:
		return make([]byte, sh.size)
	default:
		return []byte{0}
	}
}

// skippable returns an error for a schema that the library cannot skip when the
// struct has no such field: it would recurse without end on one that contains
// itself, other than through a union.
func skippable(schema hamba.Schema, above map[hamba.Schema]bool) error {
	schema = resolve(schema)
	if above[schema] {
		return errors.New("a field of recursive type must not be left out of the struct")
	}
	above[schema] = true
	defer delete(above, schema)
	switch s := schema.(type) {
	case *hamba.ArraySchema:
		return skippable(s.Items(), above)
	case *hamba.MapSchema:
		return skippable(s.Values(), above)
	case *hamba.RecordSchema:
		for _, field := range s.Fields() {
			if err := skippable(field.Type(), above); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldType returns the type of the struct field that the library matches with
// the first of names that has one, or nil. Fields of embedded structs count;
// those nearer to the top win.
func fieldType(typ reflect.Type, names []string) reflect.Type {
	for _, name := range names {
		visited := map[reflect.Type]bool{}
		for level := []reflect.Type{typ}; len(level) > 0; {
			var next []reflect.Type
			for _, t := range level {
				if visited[t] {
					continue
				}
				visited[t] = true
				found, embedded := findField(t, name)
				if found != nil {
					return found
				}
				next = append(next, embedded...)
			}
			level = next
		}
	}
	return nil
}

// findField returns the type of the field of struct t with the given Avro name,
// or else the structs embedded in t.
func findField(t reflect.Type, name string) (found reflect.Type, embedded []reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			ft := field.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				embedded = append(embedded, ft)
			}
			continue
		}
		as := field.Name
		if tag, ok := field.Tag.Lookup("avro"); ok {
			as, _, _ = strings.Cut(tag, ",")
		}
		if field.IsExported() && as == name {
			return field.Type, nil
		}
	}
	return nil, embedded
}

func isGenericMap(typ reflect.Type) bool {
	return typ.Kind() == reflect.Map && typ.Key().Kind() == reflect.String &&
		typ.Elem().Kind() == reflect.Interface && typ.Elem().NumMethod() == 0
}

// isText reports whether map keys of the type can be decoded from strings.
func isText(key reflect.Type) bool {
	return key.Kind() == reflect.String || key.Implements(textUnmarshalerType)
}

func misfit(schema hamba.Schema, typ reflect.Type, hint string) error {
	if hint != "" {
		hint = ": " + hint
	}
	return fmt.Errorf("%s cannot hold Avro %s%s", typ, schema.Type(), hint)
}
