package formats

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrNoTime is wrapped by the error of a row that lacks its time.
var ErrNoTime = errors.New("no time")

// ErrInterrupted says that Options.Interrupted asked to stop.
var ErrInterrupted = errors.New("interrupted")

// maxFound is how much of an offending value an error quotes.
const maxFound = 60

// SyntaxError is one row that cannot be read as its format says.
type SyntaxError struct {
	File string
	// Line counts from 1; Offset is the byte offset in the (decompressed) file.
	Line   int64
	Offset int64
	// Field is the name of the field at fault, "" where the whole row is.
	Field string
	// Found and Expected are what stood there and what should have.
	Found    string
	Expected string
	// Skip says that the row is as it should be but holds no request: it is
	// skipped and counted whatever --bad-lines says.
	Skip bool
	// Err is the cause, nil where Found and Expected say it all.
	Err error
}

// Error is one sentence: file, line, byte offset, field, what was found and expected.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: line %d (byte %d): ", e.File, e.Line, e.Offset)
	if e.Field != "" {
		fmt.Fprintf(&b, "field %s: ", strconv.Quote(e.Field))
	}
	var parts []string
	if e.Found != "" {
		parts = append(parts, "found "+clip(e.Found))
	}
	if e.Expected != "" {
		parts = append(parts, "expected "+e.Expected)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	b.WriteString(strings.Join(parts, ", "))
	return b.String()
}

// Unwrap gives the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Reason is the kind of fault, without the values of this row, so that rows
// with the same one are counted together.
func (e *SyntaxError) Reason() string {
	what := "not readable"
	switch {
	case e.Expected != "":
		what = "expected " + e.Expected
	case e.Err != nil:
		what = e.Err.Error()
	}
	if e.Field == "" {
		return what
	}
	return e.Field + ": " + what
}

// clip is what messages quote of a value: its start, in one line, without
// anything that a terminal would act on.
func clip(s string) string {
	if len(s) <= maxFound {
		return printable(s)
	}
	n := maxFound
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return printable(s[:n]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
}

// printable escapes what is not printable, as Go does in strings.
func printable(s string) string {
	plain := true
	for _, r := range s {
		plain = plain && r != utf8.RuneError && strconv.IsPrint(r)
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch _, n := utf8.DecodeRuneInString(s[i:]); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
