package formatstest_test

import (
	"fmt"

	"retrace/formats/formatstest"
)

func ExampleDiffJSONLines() {
	fmt.Printf("%q\n", formatstest.DiffJSONLines([]byte(`{"a":1,"b":"x"}`), []byte(`{"b":"\u0078", "a":1}`)))
	fmt.Println(formatstest.DiffJSONLines([]byte(`{"a":5.0}`), []byte(`{"a":5}`)))
	// Output:
	// ""
	// row 1 differs:
	//   source {"a":5.0}
	//   export {"a":5}
}
