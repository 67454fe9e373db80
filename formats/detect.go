package formats

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"retrace/record"
)

// headSize is how much of an input detection looks at, headRows how many rows.
const (
	headSize = 256 << 10
	headRows = 32
)

// headLines is among how many first lines a CSV file's header may be, where
// those before it are broken.
const headLines = 8

// Head is the start of an input, decompressed, as detection sees it.
type Head struct {
	// Bytes is the start, a byte order mark removed; Whole says that it is all.
	Bytes []byte
	Whole bool
	// Rows are the members of the first lines that are JSON objects. Of a line
	// that is broken or goes beyond Bytes, those behind the fault come without
	// their values (Raw is nil).
	Rows [][]Member
	// Line is the first line that is not blank, Lines are the first few of them.
	Line  string
	Lines []string

	// fault is what is wrong with Line as a JSON object, nil for nothing, and
	// number is its number from 1; more says that other lines follow it. lines
	// counts those looked at, but for blank ones and broken objects.
	fault  *ValueError
	number int
	more   bool
	lines  int
}

// NewHead looks at the start of an input; whole says that it is all of it.
func NewHead(start []byte, whole bool) *Head {
	h := &Head{Bytes: bytes.TrimPrefix(start, bom), Whole: whole}
	rest := h.Bytes
	for n := 1; len(rest) > 0 && len(h.Rows) < headRows; n++ {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		rest = after
		if line = trimLine(line); len(line) == 0 {
			continue
		}
		members, fault := headRow(line, len(rest) == 0 && !whole)
		if h.Line == "" {
			h.Line, h.fault, h.number = headLine(line), fault, n
			h.more = len(bytes.TrimSpace(rest)) > 0
		}
		if fault == nil || line[0] != '{' {
			h.lines++
		}
		if len(h.Lines) < headLines {
			h.Lines = append(h.Lines, headLine(line))
		}
		if len(members) > 0 {
			h.Rows = append(h.Rows, members)
		}
	}
	return h
}

func headLine(line []byte) string {
	if len(line) > maxHeadLine {
		return clip(string(line))
	}
	return string(line)
}

// headRow gives the members of a line, and the fault that the line has. cut
// says that the line may end anywhere.
func headRow(line []byte, cut bool) ([]Member, *ValueError) {
	for n := 0; cut && n < utf8.UTFMax && !utf8.Valid(line); n++ {
		line = line[:len(line)-min(1, len(line))]
	}
	members, err := ParseObject(line)
	var fault *ValueError
	if !errors.As(err, &fault) {
		return members, nil
	}
	for _, key := range looseKeys(line) {
		if indexOf(members, key) < 0 {
			members = append(members, Member{Key: key})
		}
	}
	return members, fault
}

// looseKeys are what looks like the keys of an object in a line that is none,
// or not a whole one: strings before a colon, outside of inner brackets.
func looseKeys(line []byte) []string {
	if len(line) == 0 || line[0] != '{' {
		return nil
	}
	var keys []string
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			start := i
			for i++; i < len(line) && line[i] != '"'; i++ {
				if line[i] == '\\' {
					i++
				}
			}
			after := bytes.TrimLeft(line[min(i+1, len(line)):], " \t")
			if depth == 1 && len(after) > 0 && after[0] == ':' {
				keys = append(keys, decodeKey(line[start:i+1]))
			}
		}
	}
	return keys
}

const maxHeadLine = 4096

// Has says whether any of the first rows has all of the keys.
func (h *Head) Has(keys ...string) bool {
	for _, row := range h.Rows {
		n := 0
		for _, k := range keys {
			if indexOf(row, k) >= 0 {
				n++
			}
		}
		if n == len(keys) {
			return true
		}
	}
	return false
}

// refused tells what the input is where it is known to be no trace; nil
// otherwise. An array in the first line alone is a broken row before others.
func (h *Head) refused() *refusal {
	r := refuse(h.Bytes)
	if r != nil && r.name == "json-array" && h.more && len(h.Rows) > 0 && ValidValue([]byte(h.Line)) {
		return nil
	}
	return r
}

// Detect names the format of an input by its first bytes. The error says what
// it looks like instead, or which formats were tried.
func Detect(h *Head) (*Format, error) {
	if r := h.refused(); r != nil {
		return nil, r
	}
	var sure, maybe []*Format
	for _, f := range registry {
		switch f.Detect(h) {
		case Sure:
			sure = append(sure, f)
		case Maybe:
			maybe = append(maybe, f)
		}
	}
	if len(sure) == 0 {
		sure = maybe
	}
	switch len(sure) {
	case 1:
		if n := h.like(sure[0]); 2*n < h.lines {
			return nil, fmt.Errorf("unknown format: it starts with %q, and only %d of its first %s like %s; choose with --from where it is one of %s",
				clip(h.Line), n, plural(int64(h.lines), "line")+" "+look(n), sure[0].Name, names(registry))
		}
		return sure[0], nil
	case 0:
		return nil, unknownFormat(h)
	}
	return nil, fmt.Errorf("the format is ambiguous: it may be %s; choose with --from", names(sure))
}

// look is the verb for n of several.
func look(n int) string {
	if n == 1 {
		return "looks"
	}
	return "look"
}

// like counts the first lines that look like the format on their own: all of
// them where its lines cannot be told alone, behind a header line.
func (h *Head) like(f *Format) int {
	if f.stored || len(h.Rows) == 0 {
		return h.lines
	}
	n := 0
	for _, row := range h.Rows {
		if f.Detect(&Head{Rows: [][]Member{row}}) != No {
			n++
		}
	}
	return n
}

func unknownFormat(h *Head) error {
	what := fmt.Sprintf("it starts with %q", clip(h.Line))
	t := bytes.TrimLeft(h.Bytes, " \t\r\n")
	switch {
	case len(t) == 0:
		return errors.New("the input is empty: it has no rows")
	case t[0] == '[':
		return errors.New("the input is one JSON array, not JSON Lines: write one object a line (jq -c '.[]')")
	case t[0] == '{' && h.fault != nil && h.fault.Cut && h.more:
		return errors.New("the input is one JSON object over several lines, not JSON Lines: write one object a line (jq -c .)")
	case len(h.Rows) > 0:
		what = "its first row has the fields " + keysOf(h.Rows[0])
	}
	if t[0] == '{' && h.fault != nil {
		what += fmt.Sprintf(" (line %d is broken: found %s, expected %s)", h.number, clip(h.fault.Found), h.fault.Expected)
	}
	return fmt.Errorf("unknown format: %s; tried %s; choose with --from where it is one of these", what, names(registry))
}

func names(fs []*Format) string {
	var list []string
	for _, f := range fs {
		list = append(list, f.Name)
	}
	return strings.Join(list, ", ")
}

const maxKeysShown = 12

func keysOf(row []Member) string {
	var list []string
	for _, m := range row {
		if len(list) == maxKeysShown {
			list = append(list, "…")
			break
		}
		list = append(list, clip(m.Key))
	}
	return strings.Join(list, ", ")
}

// choose is the format to take for an input: the named one, where it does not
// plainly fit another, else the detected one.
func choose(h *Head, from string) (*Format, error) {
	if from == "" {
		return Detect(h)
	}
	f, err := Lookup(from)
	if err != nil {
		return nil, err
	}
	if r := h.refused(); r != nil { // before Detect: RAGPulse rows look like Mooncake's
		return nil, fmt.Errorf("--from %s does not fit: %w", from, r)
	}
	if f.Detect(h) != No {
		return f, nil
	}
	if other, err := Detect(h); err == nil {
		return nil, fmt.Errorf("--from %s does not fit: it looks like %s (%s)", from, other.Name, other.Title)
	}
	if len(bytes.TrimLeft(h.Bytes, " \t\r\n")) == 0 {
		return nil, unknownFormat(h)
	}
	return f, nil
}

// isContainer says whether a file is one of Retrace's own.
func isContainer(head []byte) bool { return record.IsContainer(head) }
