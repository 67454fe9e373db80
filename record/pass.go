package record

import (
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

var (
	errNoFooter = errors.New("the file is cut short: it has no footer")
	errNoSeek   = errors.New("the file is cut short: it has no seek table")
	errBehind   = errors.New("bytes follow the seek table")
	errIndex    = errors.New("frame differs from the index")
	errOrder    = errors.New("chunk is out of order")
	errMissing  = errors.New("chunks are missing")
	errHopeless = errors.New("too much damage to go on")
)

// seen is one frame that was read.
type seen struct {
	offset int64
	seek   seekEntry
	xxh    uint64
}

// pass is one reading of a container from its header to its end. It keeps
// going after damage and notes what it cost.
type pass struct {
	path string
	scan frameScanner
	dec  *zstd.Decoder
	raw  []byte // the decompressed item

	frames   []seen
	seq      int64            // number of the next chunk
	next     map[string]int64 // records of each kind up to the next chunk
	gap      int64            // records known to be lost
	blobs    *blobStore
	nextBlob int64 // number of the next blob
	footer   *Footer
	seekSeen bool
	resyncs  int
	loss     *CorruptError
}

// maxResyncs is how often a pass looks for the next frame behind damage.
const maxResyncs = 10000

// report notes damage; the first one is what the loss names.
func (p *pass) report(offset, chunk int64, err error) {
	if p.loss == nil {
		p.loss = &CorruptError{Path: p.path, Offset: offset, Chunk: chunk, Err: err}
	}
	p.loss.Lost = p.gap
}

// lostChunk notes a chunk that was framed well but does not decode.
func (p *pass) lostChunk(h chunkHead, offset int64, err error) {
	p.gap += int64(h.count)
	p.report(offset, h.seq, err)
}

// header reads the first frame.
func (p *pass) header() (Header, error) {
	f, err := p.scan.next()
	switch {
	case errors.Is(err, io.EOF):
		return Header{}, ErrEmpty
	case errors.Is(err, errNotFrame):
		return Header{}, ErrNotContainer
	case err != nil:
		return Header{}, fmt.Errorf("read header: %w", err)
	case !IsContainer(f.bytes):
		return Header{}, ErrNotContainer
	}
	item, ok := rawContent(f.bytes)
	if !ok {
		return Header{}, errors.New("read header: damaged: its checksum is wrong")
	}
	p.note(f, item)
	return decodeHeader(item)
}

func (p *pass) note(f frame, item []byte) {
	p.frames = append(p.frames, seen{
		offset: f.offset,
		seek:   seekEntry{compressed: uint32(len(f.bytes)), content: uint32(len(item)), checksum: uint32(xxhash.Sum64(item))},
		xxh:    xxhash.Sum64(f.bytes),
	})
}

// chunk is the next whole chunk: its head, its offset, and a cursor on its
// columns, good until the next call. io.EOF ends the pass.
func (p *pass) chunk() (h chunkHead, offset int64, cur *cursor, err error) {
	for {
		f, err := p.scan.next()
		if errors.Is(err, io.EOF) {
			p.finish(p.scan.offset())
			return chunkHead{}, 0, nil, io.EOF
		}
		if bad, ok := errors.AsType[*frameError](err); ok {
			if err := p.badFrame(bad); err != nil {
				return chunkHead{}, 0, nil, err
			}
			continue
		}
		if err != nil {
			return chunkHead{}, 0, nil, fmt.Errorf("read %s: %w", p.name(), err)
		}
		if p.seekSeen {
			if err := p.behind(f.bytes, f.offset); err != nil {
				return chunkHead{}, 0, nil, err
			}
		}
		if f.skippable {
			p.seekTable(f)
			continue
		}
		h, cur, err := p.item(f)
		if err != nil {
			return chunkHead{}, 0, nil, err
		}
		if cur != nil {
			return h, f.offset, cur, nil
		}
	}
}

func (p *pass) name() string {
	if p.path == "" {
		return "stream"
	}
	return p.path
}

// badFrame notes bytes that are no frame and looks for the next one.
func (p *pass) badFrame(bad *frameError) error {
	switch {
	case p.seekSeen:
		p.report(bad.offset, -1, errBehind)
	case p.footer != nil:
		p.report(bad.offset, -1, bad.err)
	default:
		p.report(bad.offset, p.seq, bad.err)
	}
	return p.resync(bad.offset)
}

// resync goes on at the next possible frame behind offset. It gives up on
// bytes that look like frames again and again, and never are.
func (p *pass) resync(offset int64) error {
	if p.resyncs++; p.resyncs > maxResyncs {
		p.report(offset, p.seq, errHopeless)
		return fmt.Errorf("read %s: at byte %d: %w", p.name(), offset, errHopeless)
	}
	p.scan.resync(offset + 1)
	return nil
}

// behind judges a frame that follows the seek table.
func (p *pass) behind(b []byte, offset int64) error {
	if IsContainer(b) {
		return fmt.Errorf("read %s: at byte %d a second container begins: %w", p.name(), offset, ErrConcatenated)
	}
	p.report(offset, -1, errBehind)
	return nil
}

// seekTable compares the seek table with the frames.
func (p *pass) seekTable(f frame) {
	entries := make([]seekEntry, len(p.frames))
	for i := range p.frames {
		entries[i] = p.frames[i].seek
	}
	if string(appendSeekTable(nil, entries)) != string(f.bytes) {
		p.report(f.offset, -1, errSeekTable)
	}
	p.seekSeen = true
}

// item decompresses a frame. cur is nil where it holds no chunk.
func (p *pass) item(f frame) (h chunkHead, cur *cursor, err error) {
	p.raw, err = p.dec.DecodeAll(f.bytes, p.raw[:0])
	if err != nil {
		p.report(f.offset, p.seq, fmt.Errorf("decompress frame: %w", err))
		return h, nil, p.resync(f.offset)
	}
	cur = &cursor{b: p.raw}
	kind, elements, err := itemKind(cur)
	if err != nil {
		p.report(f.offset, p.seq, err)
		return h, nil, nil
	}
	switch kind {
	case itemHeader:
		return h, nil, fmt.Errorf("read %s: at byte %d a second header: %w", p.name(), f.offset, ErrConcatenated)
	case itemBlob:
		return h, nil, p.blob(f, cur, elements)
	case itemFooter:
		p.readFooter(f, cur, elements)
		return h, nil, nil
	}
	h, err = readChunkHead(cur, kind, elements)
	if err != nil {
		p.report(f.offset, p.seq, err)
		return h, nil, nil
	}
	return h, p.admit(f, h, cur), nil
}

// admit takes a chunk in, in order; nil refuses it.
func (p *pass) admit(f frame, h chunkHead, cur *cursor) *cursor {
	if h.seq < p.seq || h.first < p.next[h.kind] {
		p.report(f.offset, h.seq, errOrder)
		return nil
	}
	p.gap += h.first - p.next[h.kind]
	if h.seq != p.seq || h.first != p.next[h.kind] {
		p.report(f.offset, p.seq, errMissing)
	}
	p.seq = h.seq + 1
	p.next[h.kind] = h.first + int64(h.count)
	p.note(f, p.raw)
	return cur
}

// readFooter takes the footer in, and compares its index with the frames.
func (p *pass) readFooter(f frame, cur *cursor, elements uint64) {
	if _, ok := rawContent(f.bytes); !ok {
		p.report(f.offset, -1, errors.New("footer frame is not as it was written"))
	}
	footer, index, err := decodeFooter(cur, elements)
	if err != nil {
		p.report(f.offset, -1, err)
		return
	}
	p.footer = &footer
	k := 0
	for _, e := range index {
		for k < len(p.frames) && p.frames[k].offset < e.Offset {
			k++
		}
		if k < len(p.frames) && p.frames[k].offset == e.Offset && p.frames[k].xxh != e.XXH64 {
			p.report(e.Offset, -1, errIndex)
		}
	}
	p.note(f, p.raw)
	for _, c := range [...]struct {
		kind  string
		count int64
	}{{itemRequests, footer.Requests}, {itemResults, footer.Results}, {itemSeries, footer.Series}} {
		if missing := c.count - p.next[c.kind]; missing != 0 {
			p.gap += max(missing, 0)
			p.report(f.offset, p.seq, errMissing)
		}
	}
}

// finish judges the end of the stream.
func (p *pass) finish(offset int64) {
	switch {
	case p.footer == nil:
		p.report(offset, -1, errNoFooter)
		p.loss.Lost = Unknown
	case !p.seekSeen:
		p.report(offset, -1, errNoSeek)
	}
}
