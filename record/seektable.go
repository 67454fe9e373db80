package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The seek table of the Zstandard seekable format, version 0.1.0: a skippable
// frame of one entry a frame (compressed size, decompressed size, low half of
// the content's XXH64) and a footer (number of frames, descriptor, magic).
const (
	seekEntryLen  = 12
	seekFooterLen = 9
	seekChecksums = 0x80 // descriptor: entries have checksums
)

// seekEntry is one frame in the seek table.
type seekEntry struct {
	compressed, content, checksum uint32
}

// appendSeekTable appends the whole skippable frame.
func appendSeekTable(dst []byte, entries []seekEntry) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, skippableMagic)
	dst = le.AppendUint32(dst, uint32(seekEntryLen*len(entries)+seekFooterLen))
	for _, e := range entries {
		dst = le.AppendUint32(dst, e.compressed)
		dst = le.AppendUint32(dst, e.content)
		dst = le.AppendUint32(dst, e.checksum)
	}
	dst = le.AppendUint32(dst, uint32(len(entries)))
	dst = append(dst, seekChecksums)
	return le.AppendUint32(dst, seekableMagic)
}

var errSeekTable = errors.New("seek table does not say what the frames are")

// readTail looks for a seek table and the footer at the end of a file of the
// given size. Finding none is no error: reading the frames will tell. A file
// that holds several containers is ErrConcatenated.
func readTail(f io.ReaderAt, size int64) (*Footer, error) {
	var end [seekFooterLen]byte
	if n, _ := f.ReadAt(end[:], max(size-seekFooterLen, 0)); n < len(end) {
		return nil, nil
	}
	le := binary.LittleEndian
	frames := int64(le.Uint32(end[:]))
	table := 8 + frames*seekEntryLen + seekFooterLen
	if le.Uint32(end[5:]) != seekableMagic || end[4] != seekChecksums || frames < 2 || table > size {
		return nil, nil
	}
	sum, last := sumEntries(io.NewSectionReader(f, size-table+8, frames*seekEntryLen))
	if sum+table > size {
		return nil, nil
	}
	if start := size - table - sum; start > 0 {
		head := make([]byte, 32)
		if n, _ := f.ReadAt(head, start); IsContainer(head[:n]) {
			return nil, fmt.Errorf("at byte %d a second container begins: %w", start, ErrConcatenated)
		}
		return nil, nil
	}
	return readTailFooter(f, size-table, int64(last)), nil
}

// sumEntries adds the frames' compressed sizes; last is that of the last.
func sumEntries(r io.Reader) (sum int64, last uint32) {
	var e [seekEntryLen * 256]byte
	for {
		n, err := io.ReadFull(r, e[:])
		for i := 0; i+seekEntryLen <= n; i += seekEntryLen {
			last = binary.LittleEndian.Uint32(e[i:])
			sum += int64(last)
		}
		if err != nil {
			return sum, last
		}
	}
}

// readTailFooter reads the footer frame that ends at end, nil where there is none.
func readTailFooter(f io.ReaderAt, end, length int64) *Footer {
	if length > maxFrameBytes || length < rawHeaderLen {
		return nil
	}
	frame := make([]byte, length)
	if n, _ := f.ReadAt(frame, end-length); n < len(frame) {
		return nil
	}
	content, ok := rawContent(frame)
	if !ok {
		return nil
	}
	cur := cursor{b: content}
	kind, elements, _ := itemKind(&cur)
	if kind != itemFooter {
		return nil
	}
	footer, _, err := decodeFooter(&cur, elements)
	if err != nil {
		return nil
	}
	return &footer
}

// rawContent is the content of a frame that rawFrame made, checked bit by bit.
func rawContent(frame []byte) ([]byte, bool) {
	if len(frame) < rawHeaderLen || frame[4] != rawDescriptor {
		return nil, false
	}
	size := int(binary.LittleEndian.Uint32(frame[5:]))
	if size > len(frame) {
		return nil, false
	}
	content := make([]byte, 0, size)
	for rest := frame[rawHeaderLen:]; len(rest) > 3+checksumLen; {
		n := min(len(rest)-3-checksumLen, maxBlock)
		content, rest = append(content, rest[3:3+n]...), rest[3+n:]
	}
	return content, bytes.Equal(rawFrame(content), frame)
}
