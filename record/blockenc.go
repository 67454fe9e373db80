package record

import (
	"encoding/binary"
	"slices"
)

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
	runs    []localRun // of all requests, one after another
	start   []int      // request → its first run; one more at the end
	count   []int      // request → its number of blocks
	lengths [][2]int64 // request → input and output
	last    []int32    // local number → the latest request that has it
	newest  uint64     // one past the largest block id seen in the file
	odd     bool       // a number of blocks is not the implied one
}

// begin starts a chunk. The first one makes room for a usual chunk at once:
// memory that is not used costs nothing, moving what has grown does.
func (e *blockEncoder) begin() {
	if e.count == nil {
		e.runs = make([]localRun, 0, 4*maxRecords)
		e.start, e.count = make([]int, 0, maxRecords+1), make([]int, 0, maxRecords)
		e.lengths = make([][2]int64, 0, maxRecords)
	}
	e.table.reset()
	e.runs, e.last, e.lengths, e.count = e.runs[:0], e.last[:0], e.lengths[:0], e.count[:0]
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
	for _, run := range e.runs[e.start[i]:e.start[i+1]] {
		n := int(run.n)
		if n > len(blocks) || !slices.Equal(e.table.ids[run.start:][:n], blocks[:n]) {
			return false
		}
		blocks = blocks[n:]
	}
	return len(blocks) == 0
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
	e.runs = e.table.numbers(e.runs, r.Blocks)
	runs := e.runs[e.start[i]:]
	e.start, e.count = append(e.start, len(e.runs)), append(e.count, len(r.Blocks))
	e.last = room(e.last, len(e.table.ids)-before)[:len(e.table.ids)]
	parent, shared := e.parent(runs, uint32(before))
	for _, run := range runs {
		touched := e.last[run.start:][:run.n]
		for k := range touched {
			touched[k] = int32(i)
		}
	}
	mode := e.mode(i, parent, shared)
	if len(e.table.ids)-before != len(r.Blocks)-shared {
		mode |= modeRuns
		cols[colRuns] = appendRuns(cols[colRuns], runs, shared, uint32(before))
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
	return append(make([]T, 0, max(2*cap(s), len(s)+n, 1<<17)), s...)
}

// parent is the latest request that has the last of the leading known blocks,
// and how many leading blocks it really shares. Local numbers from before on
// are new with this request.
func (e *blockEncoder) parent(runs []localRun, before uint32) (request, shared int) {
	known, last := 0, uint32(0)
	for _, run := range runs {
		if run.start >= before {
			break
		}
		n := min(run.n, before-run.start)
		known, last = known+int(n), run.start+n-1
		if n < run.n {
			break
		}
	}
	if known == 0 {
		return 0, 0
	}
	request = int(e.last[last])
	return request, min(known, commonPrefix(runs, e.runs[e.start[request]:e.start[request+1]]))
}

// commonPrefix is how many leading blocks a and b have in common.
func commonPrefix(a, b []localRun) (n int) {
	var x, y localRun // what is left of the current runs
	for {
		if x.n == 0 {
			if len(a) == 0 {
				return n
			}
			x, a = a[0], a[1:]
		}
		if y.n == 0 {
			if len(b) == 0 {
				return n
			}
			y, b = b[0], b[1:]
		}
		if x.start != y.start {
			return n
		}
		m := min(x.n, y.n)
		n += int(m)
		x, y = localRun{x.start + m, x.n - m}, localRun{y.start + m, y.n - m}
	}
}

// mode is the shortest way to name the parent of request i.
func (e *blockEncoder) mode(i, parent, shared int) int {
	switch {
	case shared == 0:
		return modeNone
	case shared == 1 && parent == i-1:
		return modeFirst
	case shared == e.count[parent]-1:
		return modeParent
	}
	return modePart
}

// appendRuns writes runs but for their first skip blocks: zigzag(start − next),
// length, where next is the number that the next new block gets.
func appendRuns(dst []byte, runs []localRun, skip int, next uint32) []byte {
	for len(runs) > 0 {
		run := runs[0]
		runs = runs[1:]
		if int(run.n) <= skip {
			skip -= int(run.n)
			continue
		}
		run = localRun{run.start + uint32(skip), run.n - uint32(skip)}
		skip = 0
		for len(runs) > 0 && runs[0].start == run.start+run.n {
			run.n += runs[0].n
			runs = runs[1:]
		}
		dst = appendZigzag(dst, int64(run.start)-int64(next))
		dst = binary.AppendUvarint(dst, uint64(run.n))
		next = max(next, run.start+run.n)
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
		n := consecutive(rest)
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
