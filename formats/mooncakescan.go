package formats

import (
	"bytes"
	"time"
)

// plainRow is a row with nothing but the fields of the published Mooncake
// files, and times and names of sessions, written as they are written there.
type plainRow struct {
	time, delay   time.Duration
	input, output int64
	blocks        []uint64
	session       []byte // shares the line's memory
	seen          uint8
}

const (
	seenTime = 1 << iota
	seenDelay
	seenInput
	seenOutput
	seenBlocks
	seenSession
)

// maxPlain bounds the integers of the fast path: 18 digits fit an int64.
const maxPlain = 18

// mooncakeScanner reads plain rows. It takes a line only where the exporter
// gives every literal back as it stands; everything else is for the slow path,
// errors included.
type mooncakeScanner struct {
	slab    slab
	unit    time.Duration
	maxTime uint64 // in units
	// steps are the tenths, hundredths, … of a unit that are whole nanoseconds.
	steps []time.Duration
}

func newMooncakeScanner(unit time.Duration) mooncakeScanner {
	s := mooncakeScanner{unit: unit, maxTime: min(maxCount, (1<<63-1)/uint64(unit)-1)}
	for ; unit%10 == 0; unit /= 10 {
		s.steps = append(s.steps, unit/10)
	}
	return s
}

// scan reads one line into row; false says that the slow path has to.
func (s *mooncakeScanner) scan(line []byte, row *plainRow) bool {
	row.seen, row.blocks, row.session = 0, nil, nil
	if len(line) < 2 || line[0] != '{' {
		return false
	}
	i := 1
	for {
		if i < len(line) && line[i] == ' ' {
			i++
		}
		var ok bool
		if i, ok = s.member(line, i, row); !ok {
			return false
		}
		if i >= len(line) {
			return false
		}
		switch line[i] {
		case ',':
			i++
		case '}':
			return i == len(line)-1 && row.seen&seenInput != 0 && row.seen&(seenTime|seenDelay) != 0
		default:
			return false
		}
	}
}

// member reads one field that starts at i and gives where it ends.
func (s *mooncakeScanner) member(line []byte, i int, row *plainRow) (int, bool) {
	rest := line[i:]
	if len(rest) < 2 {
		return 0, false
	}
	switch rest[1] {
	case 't':
		if hasKey(rest, `"timestamp":`) {
			return s.time(line, i+len(`"timestamp":`), row, seenTime, &row.time)
		}
	case 'd':
		if hasKey(rest, `"delay":`) {
			return s.time(line, i+len(`"delay":`), row, seenDelay, &row.delay)
		}
	case 's':
		if hasKey(rest, `"session_id":`) {
			return plainSession(line, i+len(`"session_id":`), row)
		}
	case 'i':
		if hasKey(rest, `"input_length":`) {
			return plainField(line, i+len(`"input_length":`), row, seenInput, &row.input)
		}
	case 'o':
		if hasKey(rest, `"output_length":`) {
			return plainField(line, i+len(`"output_length":`), row, seenOutput, &row.output)
		}
	case 'h':
		if hasKey(rest, `"hash_ids":`) && row.seen&seenBlocks == 0 {
			row.seen |= seenBlocks
			return s.ids(line, i+len(`"hash_ids":`), row)
		}
	}
	return 0, false
}

func hasKey(b []byte, key string) bool { return len(b) > len(key) && string(b[:len(key)]) == key }

// maxCount bounds counts, and times in their unit.
const maxCount = 1<<53 - 1

// plainField reads a count after its colon.
func plainField(line []byte, i int, row *plainRow, bit uint8, to *int64) (int, bool) {
	if row.seen&bit != 0 {
		return 0, false
	}
	row.seen |= bit
	if i < len(line) && line[i] == ' ' {
		i++
	}
	start := i
	n, i := plainNumber(line, i)
	if !plainDigits(line, start, i) || n > maxCount {
		return 0, false
	}
	*to = int64(n)
	return i, true
}

// time reads a time after its colon: whole units, or with as many decimal
// places, the last not 0, as give whole nanoseconds.
func (s *mooncakeScanner) time(line []byte, i int, row *plainRow, bit uint8, to *time.Duration) (int, bool) {
	var whole int64
	end, ok := plainField(line, i, row, bit, &whole)
	if !ok || uint64(whole) > s.maxTime {
		return 0, false
	}
	*to = time.Duration(whole) * s.unit
	if end == len(line) || line[end] != '.' {
		return end, true
	}
	part, last := plainNumber(line, end+1)
	places := last - end - 1
	if places == 0 || places > len(s.steps) || line[last-1] == '0' {
		return 0, false
	}
	*to += time.Duration(part) * s.steps[places-1]
	return last, true
}

// plainSession reads a name of printable ASCII without an escape.
func plainSession(line []byte, i int, row *plainRow) (int, bool) {
	if i < len(line) && line[i] == ' ' {
		i++
	}
	if row.seen&seenSession != 0 || i >= len(line) || line[i] != '"' {
		return 0, false
	}
	row.seen |= seenSession
	start := i + 1
	for i = start; i < len(line) && line[i] >= ' ' && line[i] <= '~' && line[i] != '\\'; i++ {
		if line[i] == '"' {
			row.session = line[start:i]
			return i + 1, i > start
		}
	}
	return 0, false
}

// plainDigits says whether line[start:end] is an integer as exporters write it.
func plainDigits(line []byte, start, end int) bool {
	n := end - start
	return n > 0 && n <= maxPlain && (n == 1 || line[start] != '0')
}

// ids reads a list that is not empty.
func (s *mooncakeScanner) ids(line []byte, i int, row *plainRow) (int, bool) {
	if i < len(line) && line[i] == ' ' {
		i++
	}
	if i >= len(line) || line[i] != '[' {
		return 0, false
	}
	i++
	list := s.slab.open(idsBound(line[i:]))
	for {
		n, end := plainNumber(line, i)
		if !plainDigits(line, i, end) || end >= len(line) {
			return 0, false
		}
		list = append(list, n)
		if line[end] == ',' {
			list, end = successors(list, line, i, end)
		}
		switch i = end; line[i] {
		case ',':
			if i++; i < len(line) && line[i] == ' ' {
				i++
			}
		case ']':
			row.blocks = list
			return i + 1, true
		default:
			return 0, false
		}
	}
}

// idsBound is at least the number of ids that text may hold: of a short one by
// its length, of others by their commas.
func idsBound(text []byte) int {
	if n := len(text)/2 + 1; n <= slabSize/16 {
		return n
	}
	return bytes.Count(text, []byte(",")) + 1
}
