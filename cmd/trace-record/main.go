// Command trace-record is a reverse proxy before an OpenAI-compatible server
// that writes the requests it passes on as a trace.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
