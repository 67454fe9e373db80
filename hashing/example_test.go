package hashing_test

import (
	"fmt"

	"retrace/hashing"
)

func ExampleChain() {
	c, err := hashing.NewChain(hashing.SHA256CBOR, 16, "7")
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens := make([]uint32, 20)
	for i := range tokens {
		tokens[i] = uint32(i + 1)
	}
	fmt.Println(c.Append(nil, tokens), c.Pending())
	// Output: [16933709914029365998] 4
}
