package main

import (
	"context"
	"errors"
	"testing"
)

// TestOrInterrupted: a signal ends the wait for a computation that does not
// look for one, and what is done is given as it is.
func TestOrInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	failed := errors.New("failed")
	if n, err := orInterrupted(ctx, func() (int, error) { return 7, failed }); n != 7 || !errors.Is(err, failed) {
		t.Errorf("got %d and %v, want 7 and the error", n, err)
	}
	forever := make(chan struct{})
	defer close(forever)
	n, err := orInterrupted(ctx, func() (int, error) {
		stop()
		<-forever
		return 7, nil
	})
	if n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %d and %v, want an interruption", n, err)
	}
}
