package oracle

import (
	"bytes"
	"slices"
)

// The functions that scenarios name; Functions.java has the same ones. Values are byte slices, since a nil one can stand for
// no value where an operator of tables allows it.

// text shows a value; a value that is not there is a tilde.
func text(v []byte) string {
	if v == nil {
		return "~"
	}
	return string(v)
}

func first(v []byte) string { return string(v[:min(len(v), 1)]) }

// endsWith is about the last character.
func endsWith(v []byte, c byte) bool { return len(v) > 0 && v[len(v)-1] == c }

// mapping maps one value to another.
func mapping(name string) func([]byte) []byte {
	switch name {
	case "bang":
		return func(v []byte) []byte { return append(slices.Clone(v), '!') }
	case "first":
		return func(v []byte) []byte { return []byte(first(v)) }
	case "const":
		return func([]byte) []byte { return []byte("c") }
	case "text":
		return func(v []byte) []byte { return v }
	case "some": // of tables only: no row for some values
		return func(v []byte) []byte {
			if endsWith(v, '0') {
				return nil
			}
			return v
		}
	}
	panic("oracle: no value function " + name)
}

// flat makes several values of one: its characters.
func flat(v []byte) [][]byte { return bytes.Split(v, nil) }

// condition looks at the last character ("even", "odd") or at the first ("letter").
func condition(name string) func([]byte) bool {
	last := func(v []byte) byte {
		if len(v) == 0 {
			return 0
		}
		return v[len(v)-1]
	}
	switch name {
	case "even":
		return func(v []byte) bool { return last(v)%2 == 0 }
	case "odd":
		return func(v []byte) bool { return last(v)%2 != 0 }
	case "full":
		return func(v []byte) bool { return len(v) > 0 }
	case "letter":
		return func(v []byte) bool { return len(v) > 0 && v[0] >= 'a' }
	}
	panic("oracle: no condition " + name)
}

// keep is a condition on records.
func keep(name string) func(string, []byte) bool {
	when := condition(name)
	return func(_ string, v []byte) bool { return when(v) }
}

// keying makes a key of a record.
func keying(name string) func(string, []byte) string {
	switch name {
	case "same":
		return func(k string, _ []byte) string { return k }
	case "first":
		return func(_ string, v []byte) string { return first(v) }
	case "both":
		return func(k string, v []byte) string { return k + first(v) }
	case "const":
		return func(string, []byte) string { return "c" }
	}
	panic("oracle: no key function " + name)
}

// foreign makes a foreign key; with "foreign", a value that begins with a minus sign has none.
func foreign(name string) func(string, []byte) (string, bool) {
	if name != "foreign" {
		key := keying(name)
		return func(k string, v []byte) (string, bool) { return key(k, v), true }
	}
	return func(_ string, v []byte) (string, bool) { return first(v), !bytes.HasPrefix(v, []byte("-")) }
}

// joining joins two values, either of which may be nil. With "some", of tables only, it joins not all of them.
func joining(name string) func(left, right []byte) []byte {
	return func(left, right []byte) []byte {
		if name == "some" && endsWith(right, '0') {
			return nil
		}
		return []byte(text(left) + "/" + text(right))
	}
}

// reducing combines a row and a further value.
func reducing(name string) func(row, v []byte) []byte {
	switch name {
	case "concat":
		return func(row, v []byte) []byte { return []byte(text(row) + "+" + text(v)) }
	case "last":
		return func(_, v []byte) []byte { return v }
	case "max":
		return func(row, v []byte) []byte {
			if bytes.Compare(row, v) >= 0 {
				return row
			}
			return v
		}
	}
	panic("oracle: no reducer " + name)
}

// initial is the aggregate of nothing.
func initial() []byte { return []byte("0") }

// adding and subtracting change an aggregate; what they have done can be read in it. With "forget" some values make that
// there is no aggregate any more.
func adding(name string) func(key string, v, row []byte) []byte {
	return func(_ string, v, row []byte) []byte {
		if name == "forget" && endsWith(v, '0') {
			return nil
		}
		return []byte(text(row) + "," + text(v))
	}
}

func subtracting(name string) func(key string, v, row []byte) []byte {
	return func(_ string, v, row []byte) []byte {
		if name == "forget" && endsWith(v, '1') {
			return nil
		}
		return []byte(text(row) + ";" + text(v))
	}
}

// merging joins the aggregates of two sessions.
func merging(_ string, a, b []byte) []byte { return []byte(text(a) + "|" + text(b)) }
