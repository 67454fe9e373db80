package main

import "context"

// orInterrupted gives what compute gives, or the end of the context where that
// comes first: computing writes nothing, so that the process may end in the
// middle of it.
func orInterrupted[T any](ctx context.Context, compute func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := compute()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
