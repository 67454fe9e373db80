// Command trace-replay sends the requests of a trace to an OpenAI-compatible
// server on the trace's own schedule, records what happened, and sums it up.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
