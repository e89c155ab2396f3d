package avro_test

import (
	"errors"
	"fmt"

	"github.com/millrace-streams/millrace/serde/avro"
)

type Order struct {
	ID    int64    `avro:"id"`
	Items []string `avro:"items"`
	Note  *string  `avro:"note"`
}

var orders = avro.Must[Order](`{
	"type": "record", "name": "Order", "fields": [
		{"name": "id", "type": "long"},
		{"name": "items", "type": {"type": "array", "items": "string"}},
		{"name": "note", "type": ["null", "string"]}
	]}`)

func ExampleMust() {
	data, _ := orders.Append(nil, Order{ID: 7, Items: []string{"flour"}})
	order, _ := orders.Decode(data)
	fmt.Printf("% x\n%d %v %v\n", data, order.ID, order.Items, order.Note)

	_, err := orders.Decode(data[:3])
	fmt.Println(errors.Is(err, avro.ErrMalformed))
	// Output:
	// 0e 02 0a 66 6c 6f 75 72 00 00
	// 7 [flour] <nil>
	// true
}

// New checks the schema against the type, so that a mismatch shows when the
// serde is made and not at the first record.
func ExampleNew() {
	_, err := avro.New[Order](`{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}`)
	fmt.Println(err)
	// Output: avro: unusable schema for avro_test.Order: id: int64 cannot hold Avro string
}
