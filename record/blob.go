package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

var (
	errBlobDigest  = errors.New("blob is not what its digest says")
	errBlobChanged = errors.New("the frame of a blob has changed since it was read first")
)

// maxBlobCache is what a reader keeps of blobs in memory, one at the least.
const maxBlobCache = 16 << 20

// blobItem is a long string of base64 that bodies refer to by its number in the file.
type blobItem struct {
	number int64
	digest [sha256.Size]byte
	data   []byte
}

// appendBlob appends the item: ["blob", number, digest, data].
func appendBlob(dst []byte, b blobItem) []byte {
	dst = appendText(appendHead(dst, cborArray, 4), itemBlob)
	dst = appendHead(dst, cborUint, uint64(b.number))
	dst = append(appendHead(dst, cborBytes, sha256.Size), b.digest[:]...)
	return append(appendHead(dst, cborBytes, uint64(len(b.data))), b.data...)
}

// readBlob reads on after itemKind. The data share the cursor's memory.
func readBlob(cur *cursor, elements uint64) (b blobItem, err error) {
	number := cur.head(cborUint)
	digest := cur.bytes(cur.head(cborBytes))
	b.data = cur.bytes(cur.head(cborBytes))
	if err := cur.done(); err != nil {
		return b, fmt.Errorf("read blob: %w", err)
	}
	if elements != 4 || number > maxCount || len(digest) != sha256.Size || len(b.data) > maxRecordBytes {
		return b, fmt.Errorf("read blob: array of %d elements, number %d, digest of %d bytes, %d bytes of data", elements, number, len(digest), len(b.data))
	}
	b.number = int64(number)
	copy(b.digest[:], digest)
	return b, nil
}

// blobPlace is where the frame of a blob stands.
type blobPlace struct {
	offset int64
	frame  int // bytes
	length int // of the blob
	xxh    uint64
}

// cachedBlob is a blob in memory.
type cachedBlob struct {
	number int64
	data   []byte // the item's end
	item   []byte
}

// cost is what a blob of n bytes counts for in a cache: never so little that
// there could be many to search.
func cost(n int) int { return max(n, leastBlob) }

// blobStore finds blobs again by their numbers: it knows where their frames
// are, and holds but a few of them.
type blobStore struct {
	at     io.ReaderAt // nil: what is added is spilled to a file
	dir    string      // of that file, the system's where ""
	spill  *os.File
	spilt  int64
	places map[int64]blobPlace
	dec    *zstd.Decoder
	cache  []cachedBlob // the latest used last
}

// add notes a blob whose frame stands at offset of the source.
func (s *blobStore) add(b blobItem, frame []byte, offset int64) error {
	if s.at == nil || s.spill != nil {
		var err error
		if offset, err = s.write(frame); err != nil {
			return fmt.Errorf("keep blob in a temporary file: %w", err)
		}
	}
	if s.places == nil {
		s.places = make(map[int64]blobPlace)
	}
	s.places[b.number] = blobPlace{offset: offset, frame: len(frame), length: len(b.data), xxh: xxhash.Sum64(frame)}
	return nil
}

// write appends a frame to the temporary file, which has no name.
func (s *blobStore) write(frame []byte) (offset int64, err error) {
	if s.spill == nil {
		if s.spill, err = os.CreateTemp(s.dir, "retrace-blobs-"); err != nil {
			return 0, err
		}
		_ = os.Remove(s.spill.Name()) // close tries again, where open files cannot be removed
		s.at = s.spill
	}
	offset = s.spilt
	n, err := s.spill.Write(frame)
	s.spilt += int64(n)
	return offset, err
}

// close removes the temporary file and forgets all.
func (s *blobStore) close() {
	if s.spill != nil {
		_ = s.spill.Close()           // of no use to anybody
		_ = os.Remove(s.spill.Name()) // as a rule it has no name any more
	}
	*s = blobStore{}
}

// check says whether the blobs of all spans are there.
func (s *blobStore) check(spans []bodySpan) error {
	for _, sp := range spans {
		p, ok := s.places[sp.blob]
		if !ok {
			return fmt.Errorf("blob %d of record %d is missing", sp.blob, sp.row)
		}
		if p.length != sp.length {
			return fmt.Errorf("blob %d of record %d has %d bytes, expected %d", sp.blob, sp.row, p.length, sp.length)
		}
	}
	return nil
}

// join is a body of its own memory, with its spans put back.
func (s *blobStore) join(body []byte, spans []bodySpan) ([]byte, error) {
	n := len(body)
	for _, sp := range spans {
		n += sp.length
	}
	joined, done := make([]byte, 0, n), 0
	for _, sp := range spans {
		data, err := s.load(sp.blob)
		if err != nil {
			return nil, err
		}
		joined = append(append(joined, body[done:sp.at]...), data...)
		done = sp.at
	}
	return append(joined, body[done:]...), nil
}

// load is the data of a blob, good until the next call.
func (s *blobStore) load(number int64) ([]byte, error) {
	for i := range s.cache {
		if c := s.cache[i]; c.number == number {
			s.cache = append(append(s.cache[:i], s.cache[i+1:]...), c)
			return c.data, nil
		}
	}
	p := s.places[number]
	c := cachedBlob{number: number, item: s.evict(p.length)}
	if err := s.read(p, &c); err != nil {
		return nil, fmt.Errorf("read blob %d at byte %d: %w", number, p.offset, err)
	}
	s.cache = append(s.cache, c)
	return c.data, nil
}

// keep takes over the item of b, which a record will soon refer to. What it
// gives in exchange can be used again.
func (s *blobStore) keep(b blobItem, item []byte) []byte {
	free := s.evict(len(b.data))
	s.cache = append(s.cache, cachedBlob{number: b.number, data: b.data, item: item})
	return free
}

// evict makes room for a blob of n bytes; what it gave up last is used again.
func (s *blobStore) evict(n int) (item []byte) {
	n = cost(n)
	for i := range s.cache {
		n += cost(len(s.cache[i].data))
	}
	for n > maxBlobCache && len(s.cache) > 0 {
		n -= cost(len(s.cache[0].data))
		item = s.cache[0].item[:0]
		copy(s.cache, s.cache[1:])
		s.cache[len(s.cache)-1] = cachedBlob{}
		s.cache = s.cache[:len(s.cache)-1]
	}
	return item
}

// read fills c from the frame at p.
func (s *blobStore) read(p blobPlace, c *cachedBlob) error {
	frame := make([]byte, p.frame)
	if n, err := s.at.ReadAt(frame, p.offset); n < len(frame) {
		return err
	}
	if xxhash.Sum64(frame) != p.xxh {
		return errBlobChanged
	}
	var err error
	if c.item, err = s.dec.DecodeAll(frame, c.item); err != nil {
		return err
	}
	cur := &cursor{b: c.item}
	_, elements, err := itemKind(cur)
	if err != nil {
		return err
	}
	b, err := readBlob(cur, elements)
	c.data = b.data
	return err
}

// blob takes a blob of the file in. Only what fails as such is an error.
func (p *pass) blob(f frame, cur *cursor, elements uint64) error {
	b, err := readBlob(cur, elements)
	if err == nil && sha256.Sum256(b.data) != b.digest {
		err = errBlobDigest
	}
	if err == nil && b.number < p.nextBlob {
		err = errOrder
	}
	if err != nil {
		p.report(f.offset, -1, err)
		return nil
	}
	if b.number > p.nextBlob {
		p.report(f.offset, -1, errBlobMissing)
	}
	p.nextBlob = b.number + 1
	p.note(f, p.raw)
	if err := p.blobs.add(b, f.bytes, f.offset); err != nil {
		return fmt.Errorf("read %s: %w", p.name(), err)
	}
	p.raw = p.blobs.keep(b, p.raw)
	return nil
}

var errBlobMissing = errors.New("blobs are missing")

// putBlob writes a blob in a frame of its own.
func (w *Writer) putBlob(number int64, digest [sha256.Size]byte, data []byte) error {
	if w.blobs == nil {
		enc, err := newBlobEncoder(w.level)
		if err != nil {
			w.err = fmt.Errorf("make zstd encoder: %w", err)
			return w.err
		}
		w.blobs = enc
	}
	w.item = appendBlob(w.item[:0], blobItem{number, digest, data})
	w.frame = w.blobs.EncodeAll(w.item, w.frame[:0])
	if w.proof {
		var err error
		w.back, err = w.codec.dec.DecodeAll(w.frame, w.back[:0])
		if err != nil || string(w.back) != string(w.item) {
			w.err = fmt.Errorf("write blob %d: %w", number, errors.Join(errProof, err))
			return w.err
		}
	}
	err := w.put(w.frame, w.item, indexEntry{Kind: itemBlob})
	if len(w.item) > softChunkBytes/8 { // rare beside chunks, and much to hold
		w.item, w.frame, w.back = nil, nil, nil
	}
	return err
}

// addLong adds a request whose body is to be cut.
func (w *Writer) addLong(r *Request) error {
	body, spans, err := w.cutter.cut(r.Body)
	if err != nil {
		return err
	}
	c := *r
	c.Body = body
	return w.addCut(&c, nil, spans)
}
