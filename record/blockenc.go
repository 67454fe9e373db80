package record

import (
	"encoding/binary"
	"math"
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

// blockEncoder writes the lengths and prefix blocks of a chunk's requests.
type blockEncoder struct {
	table  blockTable
	locals []uint32 // of all requests, one after another
	start  []int    // request → its first local; one more at the end
	last   []int32  // local number → the latest request that has it
	newest uint64   // one past the largest block id seen in the file
}

// encode fills the columns of recs.
func (e *blockEncoder) encode(cols *columns, recs []Request, blockSize int) {
	total := 0
	for i := range recs {
		total += len(recs[i].Blocks)
	}
	e.table.reset(total)
	e.locals, e.last = resize(e.locals, total)[:0], resize(e.last, total)[:0]
	e.start = append(e.start[:0], 0)
	odd := false
	for i := range recs {
		r := &recs[i]
		e.one(cols, recs, i)
		extra := int64(len(r.Blocks)) - impliedBlocks(r.InputTokens, blockSize)
		odd = odd || extra != 0
		cols[colBlockCount] = appendZigzag(cols[colBlockCount], extra)
	}
	if !odd {
		cols[colBlockCount] = cols[colBlockCount][:0]
	}
	if len(e.table.ids) > 0 {
		e.originals(cols)
	}
}

// impliedBlocks is ⌈input/size⌉, 0 where the input is unknown or the trace has no blocks.
func impliedBlocks(input int64, size int) int64 {
	if input <= 0 || size <= 0 {
		return 0
	}
	return (input-1)/int64(size) + 1
}

// one writes the request i: mode, parent, lengths.
func (e *blockEncoder) one(cols *columns, recs []Request, i int) {
	r := &recs[i]
	before := len(e.table.ids)
	e.locals = e.table.numbers(e.locals, r.Blocks)
	locals := e.locals[e.start[i]:]
	e.start = append(e.start, len(e.locals))
	for len(e.last) < len(e.table.ids) {
		e.last = append(e.last, int32(i))
	}
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
	}
	if mode&3 == modePart {
		cols[colShared] = binary.AppendUvarint(cols[colShared], uint64(shared))
	}
	in, out := uint64(r.InputTokens)+1, uint64(r.OutputTokens)+1
	if mode&3 >= modeParent {
		p := &recs[parent]
		if turn := r.InputTokens - p.InputTokens - p.OutputTokens; turn >= 0 && turn < 1<<20 {
			mode |= modeTurn
			cols[colTurnInput] = binary.AppendUvarint(cols[colTurnInput], uint64(turn))
		}
	}
	if mode&modeTurn == 0 {
		cols[colInputLow] = append(cols[colInputLow], byte(in))
		cols[colInputHigh] = binary.AppendUvarint(cols[colInputHigh], in>>8)
	}
	cols[colOutputLow] = append(cols[colOutputLow], byte(out))
	cols[colOutputHigh] = binary.AppendUvarint(cols[colOutputHigh], out>>8)
	cols[colMode] = append(cols[colMode], byte(mode))
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
	for _, id := range ids {
		if id < math.MaxUint64 {
			e.newest = max(e.newest, id+1)
		}
	}
	if len(dst) >= 8*len(ids) {
		dst = append(dst[:0], originalRaw)
		for _, id := range ids {
			dst = binary.LittleEndian.AppendUint64(dst, id)
		}
	}
	cols[colBlockIDs] = dst
}
