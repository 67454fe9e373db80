package plural_test

import (
	"fmt"
	"testing"

	"retrace/internal/plural"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		n    int
		noun string
		want string
	}{
		{0, "request", "0 requests"}, {1, "request", "1 request"}, {2, "request", "2 requests"},
		{1, "retry", "1 retry"}, {2, "retry", "2 retries"}, {2, "delay", "2 delays"},
		{2, "class", "2 classes"}, {2, "batch", "2 batches"}, {3, "input token", "3 input tokens"},
	} {
		if got := plural.Of(c.n, c.noun); got != c.want {
			t.Errorf("Of(%d, %q) = %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}

func ExampleOf() {
	n := int64(1)
	fmt.Println(plural.Of(n, "request"), plural.Pick(n, "was", "were"), "not sent")
	// Output: 1 request was not sent
}
