package replay

import (
	"errors"
	"io"
	"sync"
)

var bufferPool = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled is the largest buffer that is kept for another body.
const maxPooled = 1 << 20

// payload is a request's body. Close, or the last read, gives the buffer back;
// the two may come from different goroutines, for net/http closes a body that
// it still reads from.
type payload struct {
	mu      sync.Mutex
	buf     *[]byte
	off     int
	release func()
}

var errBodyClosed = errors.New("body is closed")

// Read is io.Reader's.
func (p *payload) Read(dst []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf == nil {
		return 0, errBodyClosed
	}
	n := copy(dst, (*p.buf)[p.off:])
	p.off += n
	if p.off == len(*p.buf) {
		return n, io.EOF
	}
	return n, nil
}

// size is the body's length, bytes the body; both before it is freed.
func (p *payload) size() int64   { return int64(len(*p.buf)) }
func (p *payload) bytes() []byte { return *p.buf }

// Close is io.Closer's.
func (p *payload) Close() error {
	p.free()
	return nil
}

// free gives the buffer back; of no payload too.
func (p *payload) free() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf == nil {
		return
	}
	if cap(*p.buf) <= maxPooled {
		*p.buf = (*p.buf)[:0]
		bufferPool.Put(p.buf)
	}
	p.buf = nil
	p.release()
}
