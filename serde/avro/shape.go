package avro

import (
	"fmt"

	hamba "github.com/hamba/avro/v2"
)

// shape is a schema reduced to what is needed to find the end of a datum.
// A recursive schema gives a cyclic shape.
type shape struct {
	kind  kind
	size  int      // kindFixed: bytes; kindEnum: number of symbols
	parts []*shape // kindRecord: fields in order; kindUnion: branches
	item  *shape   // kindArray: items; kindMap: values
}

type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFixed // also float and double
	kindText  // string and bytes
	kindEnum
	kindRecord
	kindArray
	kindMap
	kindUnion
)

var primitives = map[hamba.Type]shape{
	hamba.Null:    {kind: kindNull},
	hamba.Boolean: {kind: kindBoolean},
	hamba.Int:     {kind: kindInt},
	hamba.Long:    {kind: kindLong},
	hamba.Float:   {kind: kindFixed, size: 4},
	hamba.Double:  {kind: kindFixed, size: 8},
	hamba.String:  {kind: kindText},
	hamba.Bytes:   {kind: kindText},
}

// compile returns the shape of a schema. seen holds those of the schemas that
// are compiled or being compiled, which ends recursion.
func compile(schema hamba.Schema, seen map[hamba.Schema]*shape) (*shape, error) {
	schema = resolve(schema)
	if sh, ok := seen[schema]; ok {
		return sh, nil
	}
	sh := &shape{}
	seen[schema] = sh
	if p, ok := primitives[schema.Type()]; ok {
		*sh = p
		return sh, nil
	}
	return sh, sh.compose(schema, seen)
}

// compose fills in the shape of a schema that is not primitive.
func (sh *shape) compose(schema hamba.Schema, seen map[hamba.Schema]*shape) (err error) {
	switch s := schema.(type) {
	case *hamba.FixedSchema:
		sh.kind, sh.size = kindFixed, s.Size()
	case *hamba.EnumSchema:
		sh.kind, sh.size = kindEnum, len(s.Symbols())
	case *hamba.ArraySchema:
		sh.kind = kindArray
		sh.item, err = compile(s.Items(), seen)
	case *hamba.MapSchema:
		sh.kind = kindMap
		sh.item, err = compile(s.Values(), seen)
	case *hamba.RecordSchema:
		sh.kind = kindRecord
		for _, f := range s.Fields() {
			err = sh.addPart(f.Type(), seen, err)
		}
	case *hamba.UnionSchema:
		sh.kind = kindUnion
		for _, t := range s.Types() {
			err = sh.addPart(t, seen, err)
		}
	default:
		return fmt.Errorf("unknown schema type %q", schema.Type())
	}
	return err
}

// addPart adds a field or branch, unless an earlier one has failed with err.
func (sh *shape) addPart(schema hamba.Schema, seen map[hamba.Schema]*shape, err error) error {
	if err != nil {
		return err
	}
	part, err := compile(schema, seen)
	sh.parts = append(sh.parts, part)
	return err
}

// resolve follows a reference by name to the schema it stands for.
func resolve(schema hamba.Schema) hamba.Schema {
	for {
		ref, ok := schema.(*hamba.RefSchema)
		if !ok {
			return schema
		}
		schema = ref.Schema()
	}
}
