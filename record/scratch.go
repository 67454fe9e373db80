package record

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// writeScratch is the memory that a Writer of requests works in. It is used
// again by the next Writer: what it holds is large beside a short trace.
type writeScratch struct {
	level             zstd.EncoderLevel
	codec             codec
	blobs             *zstd.Encoder // nil before the first blob
	requests          requestStage
	reqCodec          requestCodec
	item, frame, back []byte // an item, its frame, the frame decompressed
}

// The scratch that nobody uses. The collector empties them.
var (
	writeScratches sync.Pool // of *writeScratch, at the default level
	requestCodecs  sync.Pool // of *requestCodec, to read with
	decoders       sync.Pool // of *zstd.Decoder
)

// newWriteScratch is scratch in its first state.
func newWriteScratch(level zstd.EncoderLevel) (*writeScratch, error) {
	if level == zstd.SpeedDefault {
		if s, ok := writeScratches.Get().(*writeScratch); ok {
			return s, nil
		}
	}
	c, err := newCodec(level)
	if err != nil {
		return nil, err
	}
	s := &writeScratch{level: level, codec: c}
	s.reqCodec.dec = &blockDecoder{reuse: true}
	return s, nil
}

// release gives s to the next Writer.
func (s *writeScratch) release() {
	if s.level != zstd.SpeedDefault {
		s.codec.close()
		return // a run, whose blobs the Sorter has
	}
	s.requests.reset()
	s.reqCodec.enc.newest = 0
	writeScratches.Put(s)
}

// newReadDecoder is a decoder that releaseDecoder takes back.
func newReadDecoder() (*zstd.Decoder, error) {
	if d, ok := decoders.Get().(*zstd.Decoder); ok {
		return d, nil
	}
	return newDecoder()
}
