package serde

// String is the serde of strings: the encoding is the bytes of the string.
//
// The bytes are kept as they are, even where they are not valid UTF-8, so that
// every string and every record round-trips. Java's StringDeserializer
// would replace each invalid sequence by U+FFFD instead; the two differ only on
// data that no Java StringSerializer can have written.
//
// Decode allocates the string and nothing else, Append only what growing dst
// takes.
var String Serde[string] = stringSerde{}

type stringSerde struct{}

func (stringSerde) Append(dst []byte, v string) ([]byte, error) {
	return present(append(dst, v...)), nil
}

func (stringSerde) Decode(data []byte) (string, error) { return string(data), nil }

// Bytes is the serde of byte slices: the encoding is the bytes themselves.
//
// Decode returns a copy that the caller owns, never nil. Append encodes a nil
// slice as an empty one; it does not stand for null.
var Bytes Serde[[]byte] = bytesSerde{}

type bytesSerde struct{}

func (bytesSerde) Append(dst, v []byte) ([]byte, error) {
	return present(append(dst, v...)), nil
}

func (bytesSerde) Decode(data []byte) ([]byte, error) {
	v := make([]byte, len(data))
	copy(v, data)
	return v, nil
}
