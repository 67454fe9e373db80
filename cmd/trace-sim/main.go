// Command trace-sim is a simulated inference server: the OpenAI-compatible API
// of vLLM over a model of its scheduler and KV cache, to try trace-replay (or
// any load generator) without a GPU.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
