package openai

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The binary framing of AWS event streams (application/vnd.amazon.eventstream),
// in which SageMaker wraps what a container streams: a message is its length,
// its headers' length and a CRC-32 of these (a prelude of 12 bytes, big-endian),
// headers, payload, and a CRC-32 of all before it.
const (
	preludeLen = 12
	crcLen     = 4
	// maxFrame bounds a message, in bytes; AWS allows 24 MiB of payload.
	maxFrame = 25 << 20
	// maxFrameHeaders is AWS's bound.
	maxFrameHeaders = 128 << 10
)

// EventStreamError is a fault of an AWS event stream, or an exception that it
// tells.
type EventStreamError struct {
	// Exception is the type of an exception ("ModelStreamError"), "" where the
	// framing is at fault; Message says what happened.
	Exception string
	Message   string
	// Offset is the byte at which the message begins.
	Offset int64
}

// Error is one sentence.
func (e *EventStreamError) Error() string {
	if e.Exception != "" {
		return fmt.Sprintf("server sent an exception: %s: %s", e.Exception, e.Message)
	}
	return fmt.Sprintf("read event stream: message at byte %d: %s", e.Offset, e.Message)
}

// IsEventStream says whether head begins an AWS event stream: its first 12
// bytes are a prelude whose checksum is right.
func IsEventStream(head []byte) bool {
	if len(head) < preludeLen {
		return false
	}
	total, headers := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	return total >= preludeLen+crcLen && headers <= total &&
		crc32.ChecksumIEEE(head[:8]) == binary.BigEndian.Uint32(head[8:])
}

// EventStreamReader gives the payloads of an AWS event stream, one after the
// other, as the bytes that the container sent.
type EventStreamReader struct {
	src     io.Reader
	at      int64
	frame   bytes.Buffer
	payload []byte
	err     error
}

// NewEventStreamReader reads messages from src.
func NewEventStreamReader(src io.Reader) *EventStreamReader { return &EventStreamReader{src: src} }

// Read is io.Reader's. Its error is io.EOF between two messages,
// io.ErrUnexpectedEOF within one, or an *EventStreamError.
func (r *EventStreamReader) Read(p []byte) (int, error) {
	for len(r.payload) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.err = r.next()
	}
	n := copy(p, r.payload)
	r.payload = r.payload[n:]
	return n, nil
}

// next reads one message.
func (r *EventStreamReader) next() error {
	r.frame.Reset()
	if n, err := io.CopyN(&r.frame, r.src, preludeLen); err != nil {
		if errors.Is(err, io.EOF) && n > 0 {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	prelude := r.frame.Bytes()
	total, headers := int64(binary.BigEndian.Uint32(prelude)), int64(binary.BigEndian.Uint32(prelude[4:]))
	switch {
	case !IsEventStream(prelude):
		return r.fault("the checksum of its lengths is wrong")
	case total > maxFrame || headers > maxFrameHeaders || headers > total-preludeLen-crcLen:
		return r.fault(fmt.Sprintf("%d bytes with %d of headers, at most %d and %d are allowed", total, headers, maxFrame, maxFrameHeaders))
	}
	if _, err := io.CopyN(&r.frame, r.src, total-preludeLen); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	b := r.frame.Bytes()
	if crc32.ChecksumIEEE(b[:total-crcLen]) != binary.BigEndian.Uint32(b[total-crcLen:]) {
		return r.fault("its checksum is wrong")
	}
	return r.take(b[preludeLen:preludeLen+headers], b[preludeLen+headers:total-crcLen])
}

func (r *EventStreamReader) fault(message string) error {
	return &EventStreamError{Message: message, Offset: r.at}
}

// take looks at the headers of a whole message, and gives its payload or the
// exception that it is.
func (r *EventStreamReader) take(headers, payload []byte) error {
	var kind, exception, code, message string
	for len(headers) > 0 {
		name, value, rest, ok := frameHeader(headers)
		if !ok {
			return r.fault("its headers are broken")
		}
		headers = rest
		switch name {
		case ":message-type":
			kind = value
		case ":exception-type":
			exception = value
		case ":error-code":
			code = value
		case ":error-message":
			message = value
		}
	}
	switch kind {
	case "exception":
		return &EventStreamError{Exception: orElse(exception, "exception"), Message: Snippet(payload), Offset: r.at}
	case "error":
		return &EventStreamError{Exception: orElse(code, "error"), Message: message, Offset: r.at}
	}
	r.at += int64(r.frame.Len())
	r.payload = payload
	return nil
}

func orElse(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

// frameSizes are the lengths of the values of header types 0 to 9; -1 stands
// for a length of two bytes before the value.
var frameSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// frameHeader splits off the first header; value is empty for what is no string.
func frameHeader(b []byte) (name, value string, rest []byte, ok bool) {
	n := int(b[0])
	if len(b) < 1+n+1 || int(b[1+n]) >= len(frameSizes) {
		return "", "", nil, false
	}
	name, kind, b := string(b[1:1+n]), b[1+n], b[2+n:]
	size := frameSizes[kind]
	if size < 0 {
		if len(b) < 2 {
			return "", "", nil, false
		}
		size, b = int(binary.BigEndian.Uint16(b)), b[2:]
	}
	if len(b) < size {
		return "", "", nil, false
	}
	const text = 7
	if kind == text {
		value = string(b[:size])
	}
	return name, value, b[size:], true
}
