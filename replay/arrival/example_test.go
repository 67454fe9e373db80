package arrival_test

import (
	"fmt"

	"retrace/replay/arrival"
)

func ExampleLaw_Times() {
	law := arrival.Law{Kind: arrival.Gamma, Rate: 10, Burstiness: 0.5}
	fmt.Println(law)
	for at := range law.Times(4, 1) {
		_ = at // the fourth comes at 4/10 s, whatever the seed
		if at == law.Span(4, 1) {
			fmt.Println(at)
		}
	}
	// Output:
	// gamma of burstiness 0.5 at 10 requests/s
	// 400ms
}
