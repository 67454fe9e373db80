package proxy

import "sync"

// bufferSize is what one read of an answer may bring.
const bufferSize = 32 << 10

// buffers lend the memory through which answers pass.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{pool: sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

// Get is httputil.BufferPool's.
func (b *buffers) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }

// Put is httputil.BufferPool's.
func (b *buffers) Put(buf []byte) { b.pool.Put((*[bufferSize]byte)(buf)) }
