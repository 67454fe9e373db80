package record

import "encoding/binary"

// How a request's blocks follow from those of an earlier one of its chunk.
const (
	modeNone   = iota // nothing is shared
	modeFirst         // the first block of the request just before
	modeParent        // all blocks of the parent but its last
	modePart          // some leading blocks of the parent
	modeRuns   = 4    // flag: what follows is not a plain run of new blocks
	modeTurn   = 8    // flag: input length = parent's input + output + turn
	modeFlags  = 15
)

// blockEncoder writes the lengths and prefix blocks of a chunk's requests, as
// they come. It keeps their blocks until the chunk is written.
type blockEncoder struct {
	table   blockTable
	locals  []uint32   // of all requests, one after another
	start   []int      // request → its first local; one more at the end
	lengths [][2]int64 // request → input and output
	last    []int32    // local number → the latest request that has it
	newest  uint64     // one past the largest block id seen in the file
	odd     bool       // a number of blocks is not the implied one
}

// begin starts a chunk.
func (e *blockEncoder) begin() {
	e.table.reset()
	e.locals, e.last, e.lengths = e.locals[:0], e.last[:0], e.lengths[:0]
	e.start = append(e.start[:0], 0)
	e.odd = false
}

// finish writes what can be written only when all requests are known.
func (e *blockEncoder) finish(cols *columns) {
	if !e.odd {
		cols[colBlockCount] = cols[colBlockCount][:0]
	}
	if len(e.table.ids) > 0 {
		e.originals(cols)
	}
}

// sameBlocks says whether blocks are those of request i.
func (e *blockEncoder) sameBlocks(i int, blocks []uint64) bool {
	locals := e.locals[e.start[i]:e.start[i+1]]
	if len(locals) != len(blocks) {
		return false
	}
	ids := e.table.ids
	for k, n := range locals {
		if ids[n] != blocks[k] {
			return false
		}
	}
	return true
}

// impliedBlocks is ⌈input/size⌉, 0 where the input is unknown or the trace has no blocks.
func impliedBlocks(input int64, size int) int64 {
	if input <= 0 || size <= 0 {
		return 0
	}
	return (input-1)/int64(size) + 1
}

// add writes the next request: mode, parent, lengths.
func (e *blockEncoder) add(cols *columns, r *Request, blockSize int) {
	i, before := len(e.lengths), len(e.table.ids)
	e.locals = e.table.numbers(room(e.locals, len(r.Blocks)), r.Blocks)
	locals := e.locals[e.start[i]:]
	e.start = append(e.start, len(e.locals))
	e.last = room(e.last, len(e.table.ids)-before)[:len(e.table.ids)]
	parent, shared := e.parent(locals, before)
	for _, k := range locals {
		e.last[k] = int32(i)
	}
	mode := e.mode(i, parent, shared)
	if len(e.table.ids)-before != len(locals)-shared {
		mode |= modeRuns
		cols[colRuns] = appendRuns(cols[colRuns], locals[shared:], uint32(before))
	}
	if mode&3 >= modeParent {
		back := i - parent - 1
		cols[colBackLow] = append(cols[colBackLow], byte(back))
		cols[colBackHigh] = append(cols[colBackHigh], byte(back>>8))
		if p := e.lengths[parent]; e.turn(cols, r.InputTokens-p[0]-p[1]) {
			mode |= modeTurn
		}
	}
	if mode&3 == modePart {
		cols[colShared] = binary.AppendUvarint(cols[colShared], uint64(shared))
	}
	cols[colMode] = append(cols[colMode], byte(mode))
	e.appendLengths(cols, r, mode)
	extra := int64(len(r.Blocks)) - impliedBlocks(r.InputTokens, blockSize)
	e.odd = e.odd || extra != 0
	cols[colBlockCount] = appendZigzag(cols[colBlockCount], extra)
}

// turn writes by how much the input exceeds what the parent left, where that
// is shorter than the input itself.
func (e *blockEncoder) turn(cols *columns, turn int64) bool {
	if turn < 0 || turn >= 1<<20 {
		return false
	}
	cols[colTurnInput] = binary.AppendUvarint(cols[colTurnInput], uint64(turn))
	return true
}

// appendLengths writes the input length, unless turn has, and the output length.
func (e *blockEncoder) appendLengths(cols *columns, r *Request, mode int) {
	e.lengths = append(e.lengths, [2]int64{r.InputTokens, r.OutputTokens})
	in, out := uint64(r.InputTokens)+1, uint64(r.OutputTokens)+1
	if mode&modeTurn == 0 {
		cols[colInputLow] = append(cols[colInputLow], byte(in))
		cols[colInputHigh] = binary.AppendUvarint(cols[colInputHigh], in>>8)
	}
	cols[colOutputLow] = append(cols[colOutputLow], byte(out))
	cols[colOutputHigh] = binary.AppendUvarint(cols[colOutputHigh], out>>8)
}

// room makes sure that n more fit behind s, doubling what it allocates.
func room[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(make([]T, 0, max(2*cap(s), len(s)+n, 1<<10)), s...)
}

// parent is the latest request that has the last of the leading known blocks,
// and how many leading blocks it really shares. Local numbers from before on
// are new with this request.
func (e *blockEncoder) parent(locals []uint32, before int) (request, shared int) {
	known := 0
	for known < len(locals) && int(locals[known]) < before {
		known++
	}
	if known == 0 {
		return 0, 0
	}
	request = int(e.last[locals[known-1]])
	theirs := e.locals[e.start[request]:e.start[request+1]]
	n := min(known, len(theirs))
	for shared < n && locals[shared] == theirs[shared] {
		shared++
	}
	return request, shared
}

// mode is the shortest way to name the parent of request i.
func (e *blockEncoder) mode(i, parent, shared int) int {
	switch {
	case shared == 0:
		return modeNone
	case shared == 1 && parent == i-1:
		return modeFirst
	case shared == e.start[parent+1]-e.start[parent]-1:
		return modeParent
	}
	return modePart
}

// appendRuns writes local numbers as runs: zigzag(start − next), length, where
// next is the number that the next new block gets.
func appendRuns(dst []byte, locals []uint32, next uint32) []byte {
	for len(locals) > 0 {
		n := 1
		for n < len(locals) && locals[n] == locals[0]+uint32(n) {
			n++
		}
		dst = appendZigzag(dst, int64(locals[0])-int64(next))
		dst = binary.AppendUvarint(dst, uint64(n))
		next = max(next, locals[0]+uint32(n))
		locals = locals[n:]
	}
	return dst
}

// How the block ids behind the local numbers are written: a first byte.
const (
	originalRuns = iota // runs of successive ids
	originalRaw         // 8 bytes each, little endian
)

// originals writes the ids behind the local numbers, as runs of successive
// ids or as they are, whichever is shorter.
//
//	0 · uvarint next · (zigzag start−next · uvarint length) …
//	1 · 8 bytes …
//
// next becomes the end of a run that ends beyond it.
func (e *blockEncoder) originals(cols *columns) {
	ids := e.table.ids
	dst := append(cols[colBlockIDs], originalRuns)
	next := e.newest
	e.newest = max(e.newest, e.table.max+1) // 0 where it wraps
	dst = binary.AppendUvarint(dst, next)
	for rest := ids; len(rest) > 0 && len(dst) < 8*len(ids); {
		n := 1
		for n < len(rest) && rest[n] == rest[0]+uint64(n) {
			n++
		}
		dst = appendZigzag(dst, int64(rest[0]-next))
		dst = binary.AppendUvarint(dst, uint64(n))
		next = max(next, rest[0]+uint64(n))
		rest = rest[n:]
	}
	if len(dst) >= 8*len(ids) {
		dst = append(dst[:0], originalRaw)
		for _, id := range ids {
			dst = binary.LittleEndian.AppendUint64(dst, id)
		}
	}
	cols[colBlockIDs] = dst
}
