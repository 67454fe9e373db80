package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// frameScanner cuts a stream into Zstandard frames without decompressing
// them. It holds one frame at a time, and never more than it has really read.
type frameScanner struct {
	r    io.Reader
	buf  []byte
	pos  int   // start of what is unread
	end  int   // end of what was read
	base int64 // offset in the stream of buf[0]
	err  error // of r, io.EOF at its end
}

// frame is one frame as it stands in the file. Its bytes are the scanner's
// until the next call.
type frame struct {
	offset    int64
	bytes     []byte
	skippable bool
}

// frameError is what a scanner says of bytes that are no frame of ours.
type frameError struct {
	offset int64
	err    error
}

func (e *frameError) Error() string { return fmt.Sprintf("at byte %d: %v", e.offset, e.err) }
func (e *frameError) Unwrap() error { return e.err }

var (
	errCut      = errors.New("the file is cut short inside a frame")
	errNotFrame = errors.New("no frame begins here")
	errTooLong  = fmt.Errorf("frame of more than %d bytes", maxFrameBytes)
)

func (s *frameScanner) offset() int64 { return s.base + int64(s.pos) }

// need makes n bytes available from pos, where the stream has them.
func (s *frameScanner) need(n int) bool {
	for s.end-s.pos < n {
		if s.err != nil {
			return false
		}
		if s.end == len(s.buf) {
			s.room(n)
		}
		m, err := s.r.Read(s.buf[s.end:])
		s.end += m
		s.err = err
	}
	return true
}

// room makes place behind end: by moving what is unread to the front, or by
// doubling a buffer that is full of it.
func (s *frameScanner) room(n int) {
	const least = 64 << 10
	unread := s.buf[s.pos:s.end]
	to := s.buf
	if len(unread) > len(s.buf)/2 || len(s.buf) == 0 {
		to = make([]byte, max(least, min(2*len(s.buf), len(unread)+max(n, least))))
	}
	s.base += int64(s.pos)
	s.end = copy(to, unread)
	s.pos, s.buf = 0, to
}

// next is the next frame, io.EOF at a clean end, a *frameError where the bytes
// are none (pos stays before them), or the reader's error.
func (s *frameScanner) next() (frame, error) {
	if !s.need(1) {
		return frame{}, s.err
	}
	f := frame{offset: s.offset()}
	n, err := s.measure(&f)
	if err != nil {
		if s.err != nil && !errors.Is(s.err, io.EOF) {
			return frame{}, s.err
		}
		return frame{}, &frameError{offset: f.offset, err: err}
	}
	f.bytes = s.buf[s.pos : s.pos+n]
	s.pos += n
	return f, nil
}

// measure finds the length of the frame at pos, reading it all.
func (s *frameScanner) measure(f *frame) (int, error) {
	if !s.need(9) {
		return 0, errCut
	}
	switch binary.LittleEndian.Uint32(s.buf[s.pos:]) {
	case skippableMagic:
		f.skippable = true
		n := 8 + int(binary.LittleEndian.Uint32(s.buf[s.pos+4:]))
		if n > maxFrameBytes {
			return 0, errTooLong
		}
		if !s.need(n) {
			return 0, errCut
		}
		return n, nil
	case frameMagic:
		return s.measureZstd()
	}
	return 0, errNotFrame
}

func (s *frameScanner) measureZstd() (int, error) {
	n := headerSize(s.buf[s.pos+4])
	if !s.need(n) {
		return 0, errCut
	}
	if _, err := parseFrameHeader(s.buf[s.pos : s.pos+n]); err != nil {
		return 0, err
	}
	for {
		if !s.need(n + 3) {
			return 0, errCut
		}
		b := s.buf[s.pos+n:]
		size, last, err := blockSpan(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16)
		if err != nil {
			return 0, err
		}
		n += 3 + size
		if last {
			n += checksumLen
		}
		if n > maxFrameBytes {
			return 0, errTooLong
		}
		if !s.need(n) {
			return 0, errCut
		}
		if last {
			return n, nil
		}
	}
}

var (
	magicBytes = binary.LittleEndian.AppendUint32(nil, frameMagic)
	seekBytes  = binary.LittleEndian.AppendUint32(nil, skippableMagic)
)

// resync moves pos to the next place behind from, an offset in the buffer's
// reach, where a frame may begin. It is false where the stream has none.
func (s *frameScanner) resync(from int64) bool {
	s.pos = int(from - s.base)
	for {
		rest := s.buf[s.pos:s.end]
		at := bytes.Index(rest, magicBytes)
		if k := bytes.Index(rest, seekBytes); k >= 0 && (at < 0 || k < at) {
			at = k
		}
		if at >= 0 {
			s.pos += at
			return true
		}
		s.pos = max(s.pos, s.end-3)
		if !s.need(4) {
			s.pos = s.end
			return false
		}
	}
}
