package record

import (
	"errors"
	"fmt"
)

// Faults of a container that end the reading of it.
var (
	// ErrNotContainer says that the bytes are no container of Retrace's.
	ErrNotContainer = errors.New("not a Retrace container")
	// ErrEmpty says that there are no bytes at all, which is not an empty trace.
	ErrEmpty = errors.New("the file is empty (0 bytes)")
	// ErrConcatenated says that a second container follows the first in one file.
	ErrConcatenated = errors.New("several containers concatenated into one file; convert them together instead")
)

// CorruptError says what of a container could not be read. Whole chunks
// around the damage are delivered all the same.
type CorruptError struct {
	// Path is the file, "" for a stream.
	Path string
	// Offset is the byte offset of the first damage, Chunk the number of the
	// first damaged chunk, from 0, or -1 where it lies outside the chunks.
	Offset int64
	Chunk  int64
	// Lost is the number of records lost, Unknown where the file cannot tell.
	Lost int64
	// Err is the first fault met.
	Err error
}

// Error is a sentence that names the file, the place, the fault and the loss.
func (e *CorruptError) Error() string {
	path := e.Path
	if path == "" {
		path = "stream"
	}
	where := fmt.Sprintf("at byte %d", e.Offset)
	if e.Chunk >= 0 {
		where += fmt.Sprintf(" (chunk %d)", e.Chunk)
	}
	switch {
	case e.Lost < 0:
		return fmt.Sprintf("read %s: %s: %v; how many records are lost is unknown", path, where, e.Err)
	case e.Lost == 1:
		return fmt.Sprintf("read %s: %s: %v; 1 record is lost", path, where, e.Err)
	}
	return fmt.Sprintf("read %s: %s: %v; %d records are lost", path, where, e.Err, e.Lost)
}

// Unwrap is the first fault met.
func (e *CorruptError) Unwrap() error { return e.Err }
