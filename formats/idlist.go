package formats

import "bytes"

// plainIDs reads a JSON array of block ids that are spelt as an exporter spells
// them, which is nearly every one; false for an empty or any other array. The
// list's memory comes from s.
func plainIDs(raw []byte, s *slab) ([]uint64, bool) {
	if len(raw) < 3 || raw[0] != '[' || raw[len(raw)-1] != ']' {
		return nil, false
	}
	raw = raw[1 : len(raw)-1]
	ids := s.open(bytes.Count(raw, []byte(",")) + 1)
	for len(raw) > 0 {
		id, n := plainID(raw)
		if n == 0 {
			return nil, false
		}
		ids = append(ids, id)
		raw = raw[n:]
		if len(raw) == 0 {
			return s.keep(ids), true
		}
		if raw[0] != ',' {
			return nil, false
		}
		raw = bytes.TrimLeft(raw[1:], " ")
	}
	return nil, false
}

// plainID reads the id that text starts with and gives its length, 0 where it
// is none that fits 64 bits or is spelt otherwise.
func plainID(text []byte) (id uint64, n int) {
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		digit := uint64(text[n] - '0')
		if id > (1<<64-1)/10 || id == (1<<64-1)/10 && digit > (1<<64-1)%10 {
			return 0, 0
		}
		id = id*10 + digit
		n++
	}
	if n > 1 && text[0] == '0' {
		return 0, 0
	}
	return id, n
}
