//go:build !unix

package record

import (
	"errors"
	"os"
)

// openDescriptor is for systems that have no such names: never called there.
func openDescriptor(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
