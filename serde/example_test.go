package serde_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/serde"
)

func ExampleString() {
	data, _ := serde.String.Append(nil, "mühle")
	text, _ := serde.String.Decode(data)
	fmt.Printf("% x\n%s\n", data, text)
	// Output:
	// 6d c3 bc 68 6c 65
	// mühle
}

func ExampleBytes() {
	data := []byte{1, 2, 3}
	own, _ := serde.Bytes.Decode(data)
	data[0] = 9
	fmt.Println(own)
	// Output: [1 2 3]
}

func ExampleInt32() {
	data, _ := serde.Int32.Append(nil, -2)
	fmt.Printf("% x\n", data)
	// Output: ff ff ff fe
}

func ExampleInt64() {
	data, _ := serde.Int64.Append(nil, 258)
	fmt.Printf("% x\n", data)

	_, err := serde.Int64.Decode([]byte("258"))
	fmt.Println(err)
	fmt.Println(errors.Is(err, serde.ErrLength))
	// Output:
	// 00 00 00 00 00 00 01 02
	// serde: cannot decode 3 bytes as int64: wrong length, want 8
	// true
}

func ExampleFloat64() {
	data, _ := serde.Float64.Append(nil, 1.5)
	fmt.Printf("% x\n", data)
	// Output: 3f f8 00 00 00 00 00 00
}

func ExampleJSON() {
	type Order struct {
		ID    int64  `json:"id"`
		State string `json:"state"`
	}
	orders := serde.JSON[Order]()

	data, _ := orders.Append(nil, Order{ID: 7, State: "paid"})
	order, _ := orders.Decode(data)
	fmt.Printf("%s\n%+v\n", data, order)
	// Output:
	// {"id":7,"state":"paid"}
	// {ID:7 State:paid}
}

// A serde for durations, stored as the text that people write.
func ExampleFunc() {
	durations := serde.Func(
		func(dst []byte, d time.Duration) ([]byte, error) { return append(dst, d.String()...), nil },
		func(data []byte) (time.Duration, error) { return time.ParseDuration(string(data)) },
	)

	data, _ := durations.Append(nil, 90*time.Second)
	fmt.Printf("%s\n", data)

	_, err := durations.Decode([]byte("soon"))
	var de *serde.DecodeError
	fmt.Println(errors.As(err, &de), de.Type)
	// Output:
	// 1m30s
	// true time.Duration
}
