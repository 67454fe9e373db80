package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// The parts of the Zstandard format (RFC 8878) that the container uses: only
// frames with a content size, a content checksum and a single segment.
const (
	frameMagic     = 0xFD2FB528
	skippableMagic = 0x184D2A5E
	seekableMagic  = 0x8F92EAB1
	maxBlock       = 128 << 10 // Block_Maximum_Size
	rawDescriptor  = 0xA4      // 4-byte content size, single segment, checksum
	rawHeaderLen   = 4 + 1 + 4 // magic, descriptor, content size
	checksumLen    = 4
)

// containerHead is what follows the first block header of a container: a CBOR
// array of three whose first element is the text "retrace".
var containerHead = []byte("\x83\x67retrace")

// IsContainer says whether a file that starts with head is a container. 32
// bytes of head are enough.
func IsContainer(head []byte) bool {
	const item = rawHeaderLen + 3
	return len(head) >= item+len(containerHead) &&
		binary.LittleEndian.Uint32(head) == frameMagic &&
		head[4] == rawDescriptor &&
		bytes.HasPrefix(head[item:], containerHead)
}

// rawFrame is content as a frame of raw blocks. Such a frame has
// exactly one form, so that any changed bit of it shows, and its first bytes
// can be recognised without decompressing.
func rawFrame(content []byte) []byte {
	dst := make([]byte, 0, rawHeaderLen+len(content)+3*(len(content)/maxBlock+1)+checksumLen)
	dst = binary.LittleEndian.AppendUint32(dst, frameMagic)
	dst = append(dst, rawDescriptor)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(content)))
	sum := uint32(xxhash.Sum64(content))
	for {
		n := min(len(content), maxBlock)
		head := uint32(n) << 3
		if n == len(content) {
			head |= 1
		}
		dst = append(dst, byte(head), byte(head>>8), byte(head>>16))
		dst = append(dst, content[:n]...)
		content = content[n:]
		if head&1 != 0 {
			return binary.LittleEndian.AppendUint32(dst, sum)
		}
	}
}

// frameHeader is the parsed start of a Zstandard frame.
type frameHeader struct {
	size    int    // of the header itself
	content uint64 // Frame_Content_Size
}

// headerSize is the length of a frame header with descriptor d.
func headerSize(d byte) int { return 5 + [4]int{1, 2, 4, 8}[d>>6] }

// parseFrameHeader reads a header of which all bytes are there. Whatever our
// writer never makes is refused: unused bits set, a dictionary, no checksum.
func parseFrameHeader(b []byte) (frameHeader, error) {
	d := b[4]
	if d&0x3F != 0x24 {
		return frameHeader{}, fmt.Errorf("frame descriptor is 0x%02x, expected a single segment with checksum and no dictionary", d)
	}
	h := frameHeader{size: headerSize(d)}
	switch d >> 6 {
	case 0:
		h.content = uint64(b[5])
	case 1:
		h.content = uint64(binary.LittleEndian.Uint16(b[5:])) + 256
	case 2:
		h.content = uint64(binary.LittleEndian.Uint32(b[5:]))
	case 3:
		h.content = binary.LittleEndian.Uint64(b[5:])
	}
	if h.content > maxItemBytes {
		return h, fmt.Errorf("frame claims %d bytes of content, at most %d are allowed", h.content, maxItemBytes)
	}
	return h, nil
}

var errBlockType = errors.New("reserved block type")

// blockSpan is the number of bytes that follow a block header, and whether
// the block is the frame's last.
func blockSpan(head uint32) (n int, last bool, err error) {
	size := int(head >> 3)
	if size > maxBlock {
		return 0, false, fmt.Errorf("block of %d bytes, at most %d are allowed", size, maxBlock)
	}
	switch head >> 1 & 3 {
	case 1: // RLE: one byte, repeated
		size = 1
	case 3:
		return 0, false, errBlockType
	}
	return size, head&1 != 0, nil
}

// codec compresses and decompresses frames, one at a time, on the caller's
// goroutine.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// newEncoder is deterministic: one goroutine, one level.
func newEncoder(level zstd.EncoderLevel) (*zstd.Encoder, error) {
	return newEncoderWith(level)
}

// newBlobEncoder makes smaller what only has few different bytes: base64
// repeats nothing, and takes 6 bits a character. Its window is small: what
// repeats far apart is a picture, not a part of one.
func newBlobEncoder(level zstd.EncoderLevel) (*zstd.Encoder, error) {
	return newEncoderWith(level, zstd.WithWindowSize(1<<20), zstd.WithAllLitEntropyCompression(true))
}

func newEncoderWith(level zstd.EncoderLevel, more ...zstd.EOption) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, append([]zstd.EOption{
		zstd.WithEncoderLevel(level),
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(true),
		zstd.WithSingleSegment(true),
		zstd.WithZeroFrames(true),
	}, more...)...)
}

func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(maxItemBytes),
		zstd.WithDecoderMaxWindow(maxItemBytes))
}

// newCodec makes both directions.
func newCodec(level zstd.EncoderLevel) (codec, error) {
	enc, err := newEncoder(level)
	if err != nil {
		return codec{}, fmt.Errorf("make zstd encoder: %w", err)
	}
	dec, err := newDecoder()
	if err != nil {
		return codec{}, fmt.Errorf("make zstd decoder: %w", err)
	}
	return codec{enc: enc, dec: dec}, nil
}

func (c codec) close() {
	if c.enc != nil {
		_ = c.enc.Close() // nothing is buffered: only EncodeAll is used
	}
	if c.dec != nil {
		c.dec.Close()
	}
}
