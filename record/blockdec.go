package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// blockDecoder reads what blockEncoder wrote, keeping its scratch.
type blockDecoder struct {
	parent [maxRecords]int32
	shared [maxRecords]int32
	count  [maxRecords]int32
	input  [maxRecords]int64
	output [maxRecords]int64
	fresh  [maxRecords]int64     // inputs that are written themselves
	offset [maxRecords + 1]int32 // record → its first block
	total  int                   // of count
	ids    []uint64              // local number → block id
	blocks []uint64              // of all records, one after another
	reuse  bool                  // the blocks need not outlive the next chunk
}

// lengthColumns are what is left of the columns of the first pass.
type lengthColumns struct {
	mode, backLow, backHigh []byte
	shared, turn            cursor
	inputs                  []int64
	blockCount              cursor
	counted                 bool // blockCount is there
}

// decode reads n records: lengths first, then the blocks.
func (d *blockDecoder) decode(cols *columns, n, blockSize int) error {
	if err := d.lengths(cols, n, blockSize); err != nil {
		return err
	}
	if err := d.originals(cols[colBlockIDs]); err != nil {
		return fmt.Errorf("column bn: %w", err)
	}
	return d.expand(cols, n)
}

func (d *blockDecoder) lengths(cols *columns, n, blockSize int) error {
	c := lengthColumns{
		mode: cols[colMode], backLow: cols[colBackLow], backHigh: cols[colBackHigh],
		shared: cursor{b: cols[colShared]}, turn: cursor{b: cols[colTurnInput]},
		blockCount: cursor{b: cols[colBlockCount]}, counted: len(cols[colBlockCount]) > 0,
	}
	inputLow, outputLow := cols[colInputLow], cols[colOutputLow]
	if len(c.mode) != n || len(outputLow) != n || len(inputLow) > n || len(c.backLow) != len(c.backHigh) {
		return fmt.Errorf("columns mo, ol, il, bl, bh have %d, %d, %d, %d, %d bytes for %d records",
			len(c.mode), len(outputLow), len(inputLow), len(c.backLow), len(c.backHigh), n)
	}
	c.inputs = d.fresh[:len(inputLow)]
	if err := joinLengths(c.inputs, inputLow, cols[colInputHigh]); err != nil {
		return fmt.Errorf("column ih: %w", err)
	}
	if err := joinLengths(d.output[:n], outputLow, cols[colOutputHigh]); err != nil {
		return fmt.Errorf("column oh: %w", err)
	}
	d.total = 0
	for i := range n {
		if err := d.one(&c, i, blockSize); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	if len(c.backLow)+len(c.inputs) != 0 {
		return fmt.Errorf("columns bl, il: %w", errTrailing)
	}
	return c.done()
}

// joinLengths puts lengths together: their low bytes, and what is above these
// as a LEB128 number each, of length + 1.
func joinLengths(dst []int64, low, high []byte) error {
	for i := range dst {
		if len(high) == 0 {
			return errShort
		}
		v, n := uint64(high[0]), 1
		if v >= 0x80 {
			if v, n = binary.Uvarint(high); n == 0 {
				return errShort
			} else if n < 0 {
				return errVarint
			}
		}
		dst[i] = int64(v<<8|uint64(low[i])) - 1
		high = high[n:]
	}
	if len(high) > 0 {
		return fmt.Errorf("%w: %d", errTrailing, len(high))
	}
	return nil
}

// done says whether every column was read to its end.
func (c *lengthColumns) done() error {
	ends := [...]struct {
		name string
		cur  *cursor
	}{{"sh", &c.shared}, {"tu", &c.turn}, {"bx", &c.blockCount}}
	for _, e := range ends {
		if err := e.cur.done(); err != nil {
			return fmt.Errorf("column %s: %w", e.name, err)
		}
	}
	return nil
}

// one reads the mode, parent and lengths of record i.
func (d *blockDecoder) one(c *lengthColumns, i, blockSize int) error {
	mode := c.mode[i]
	parent, shared := i-1, 0
	switch mode & 3 {
	case modeFirst:
		shared = 1
	case modeParent, modePart:
		if len(c.backLow) == 0 {
			return fmt.Errorf("column bl: %w", errShort)
		}
		parent -= int(c.backLow[0]) | int(c.backHigh[0])<<8
		c.backLow, c.backHigh = c.backLow[1:], c.backHigh[1:]
	}
	if mode > modeFlags || mode&3 != modeNone && parent < 0 || mode&modeTurn != 0 && mode&3 < modeParent {
		return fmt.Errorf("mode %d with parent %d", mode, parent)
	}
	switch mode & 3 {
	case modeParent:
		shared = int(d.count[parent]) - 1
	case modePart:
		shared = int(min(c.shared.uvarint(), math.MaxInt32))
	}
	if mode&modeTurn != 0 {
		d.input[i] = d.input[parent] + d.output[parent] + int64(c.turn.uvarint())
	} else {
		if len(c.inputs) == 0 {
			return fmt.Errorf("column il: %w", errShort)
		}
		d.input[i] = c.inputs[0]
		c.inputs = c.inputs[1:]
	}
	n := impliedBlocks(d.input[i], blockSize)
	if c.counted {
		n += c.blockCount.zigzag()
	}
	return d.place(i, parent, shared, n)
}

// place notes where the n blocks of record i come from.
func (d *blockDecoder) place(i, parent, shared int, n int64) error {
	if n < 0 || n > maxItemBytes/8 || int64(d.total)+n > maxItemBytes/8 {
		return fmt.Errorf("%d blocks, at most %d are allowed in a chunk", n, maxItemBytes/8)
	}
	if shared < 0 || int64(shared) > n || shared > 0 && shared > int(d.count[parent]) {
		return fmt.Errorf("shares %d blocks of its %d with a request that has others", shared, n)
	}
	d.parent[i], d.shared[i], d.count[i] = int32(parent), int32(shared), int32(n)
	d.total += int(n)
	return nil
}

// originals reads the block ids behind the local numbers. There cannot be
// more of them than blocks.
func (d *blockDecoder) originals(b []byte) error {
	d.ids = d.ids[:0]
	if len(b) == 0 {
		return nil
	}
	cur := cursor{b: b[1:]}
	switch b[0] {
	case originalRaw:
		n := cur.left() / 8
		if cur.left()%8 != 0 || n > d.total {
			return fmt.Errorf("%d bytes for at most %d ids", cur.left(), d.total)
		}
		d.ids = resize(d.ids, n)
		for i := range d.ids {
			d.ids[i] = binary.LittleEndian.Uint64(cur.b[8*i:])
		}
		return nil
	case originalRuns:
		return d.originalRuns(&cur)
	}
	return fmt.Errorf("encoding %d", b[0])
}

func (d *blockDecoder) originalRuns(cur *cursor) error {
	next := cur.uvarint()
	for cur.left() > 0 {
		start := next + uint64(cur.zigzag())
		n := cur.uvarint()
		if n > uint64(d.total-len(d.ids)) {
			cur.fail(fmt.Errorf("run of %d ids where %d are left", n, d.total-len(d.ids)))
			break
		}
		have := len(d.ids)
		if cap(d.ids)-have < int(n) {
			d.ids = append(make([]uint64, 0, min(d.total, max(2*have+int(n), 1<<17))), d.ids...)
		}
		d.ids = d.ids[:have+int(n)]
		run, id := d.ids[have:], start
		for i := range run {
			run[i] = id
			id++
		}
		next = max(next, id)
	}
	return cur.done()
}

// expand is the second pass: every record's blocks.
func (d *blockDecoder) expand(cols *columns, records int) error {
	if d.reuse {
		if cap(d.blocks) < d.total {
			d.blocks = make([]uint64, d.total+d.total/4) // the next chunk's may be some more
		}
		d.blocks = d.blocks[:d.total]
	} else {
		d.blocks = make([]uint64, d.total)
	}
	runs := cursor{b: cols[colRuns]}
	next, at := 0, 0
	for i := range records {
		d.offset[i] = int32(at)
		own := d.blocks[at : at+int(d.count[i])]
		at += len(own)
		if shared := int(d.shared[i]); shared > 0 {
			from := d.offset[d.parent[i]]
			own = own[copy(own, d.blocks[from:int(from)+shared]):]
		}
		if cols[colMode][i]&modeRuns != 0 {
			if next = d.runs(&runs, own, next); runs.err != nil {
				return fmt.Errorf("record %d: column ru: %w", i, runs.err)
			}
			continue
		}
		if len(own) > len(d.ids)-next {
			return fmt.Errorf("record %d: %d new blocks where %d are left", i, len(own), len(d.ids)-next)
		}
		next += copy(own, d.ids[next:])
	}
	d.offset[records] = int32(at)
	if err := runs.done(); err != nil {
		return fmt.Errorf("column ru: %w", err)
	}
	if next != len(d.ids) {
		return fmt.Errorf("%d of %d block ids are used", next, len(d.ids))
	}
	return nil
}

// of is the blocks of record i, nil where it has none.
func (d *blockDecoder) of(i int) []uint64 {
	from, to := d.offset[i], d.offset[i+1]
	if from == to {
		return nil
	}
	return d.blocks[from:to:to]
}

// runs fills own from runs of local numbers, and is the next new number after them.
func (d *blockDecoder) runs(cur *cursor, own []uint64, next int) int {
	for len(own) > 0 && cur.err == nil {
		start := int64(next) + cur.zigzag()
		n := cur.uvarint()
		if start < 0 || n == 0 || n > uint64(len(own)) || start > int64(len(d.ids))-int64(n) {
			cur.fail(fmt.Errorf("run of %d from number %d of %d, for %d blocks", n, start, len(d.ids), len(own)))
			return next
		}
		copy(own, d.ids[start:start+int64(n)])
		own = own[n:]
		next = max(next, int(start)+int(n))
	}
	return next
}
