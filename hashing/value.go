package hashing

import "fmt"

// Constant is a text that is one and the same Python object wherever it occurs
// in a block, as a constant of vLLM's own code is: the "mm" of two images in
// one block. A pickle refers back to an object that it has written already,
// so two equal texts give other bytes than one text twice; CBOR knows no
// difference. A string is an object of its own at each place, as text from a
// request is.
type Constant string

// unknownValue is the error for what no serialisation here takes.
func unknownValue(v any) error {
	return fmt.Errorf("encode value: found %T, expected nil, bool, string, hashing.Constant, []byte, int, int64, uint64, float64, "+
		"[]any, []uint32 or []uint64", v)
}
