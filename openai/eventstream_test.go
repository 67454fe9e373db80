package openai

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// frameOf makes a message by the published layout.
func frameOf(payload string, headers ...string) []byte {
	var head []byte
	for i := 0; i+1 < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = append(binary.BigEndian.AppendUint16(append(head, 7), uint16(len(headers[i+1]))), headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(head)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, head...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func payloadPart(payload string) []byte {
	return frameOf(payload, ":message-type", "event", ":event-type", "PayloadPart", ":content-type", "application/octet-stream")
}

// Two vectors of AWS's own test suite for event streams: empty_message and
// payload_no_headers.
func TestEventStreamKnownMessages(t *testing.T) {
	for text, want := range map[string]string{
		"00000010" + "00000000" + "05c248eb" + "7d98c8ff":                                "",
		"0000001d" + "00000000" + "fd528c5a" + "7b27666f6f273a27626172277d" + "c3653936": "{'foo':'bar'}",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(NewEventStreamReader(bytes.NewReader(b)))
		if err != nil || string(got) != want || !IsEventStream(b) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

func TestEventStream(t *testing.T) {
	whole := bytes.Join([][]byte{payloadPart("data: {\"a\""), payloadPart(""), payloadPart(":1}\n\n")}, nil)
	for how, r := range map[string]io.Reader{"at once": bytes.NewReader(whole), "byte by byte": iotest.OneByteReader(bytes.NewReader(whole))} {
		if got, err := io.ReadAll(NewEventStreamReader(r)); err != nil || string(got) != "data: {\"a\":1}\n\n" {
			t.Errorf("%s: got %q, %v", how, got, err)
		}
	}
	for n := range whole {
		_, err := io.ReadAll(NewEventStreamReader(bytes.NewReader(whole[:n])))
		between := n == 0 || n == len(payloadPart("data: {\"a\"")) || n == len(payloadPart("data: {\"a\""))+len(payloadPart(""))
		if between != (err == nil) || !between && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

// A flipped bit is found, wherever it is.
func TestEventStreamFlippedBits(t *testing.T) {
	whole := payloadPart("hello")
	for i := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		got, err := io.ReadAll(NewEventStreamReader(bytes.NewReader(b)))
		if err == nil || len(got) > 0 {
			t.Errorf("bit %d: got %q, %v", i, got, err)
		}
	}
}

func TestEventStreamExceptions(t *testing.T) {
	for _, c := range []struct {
		frame     []byte
		exception string
		message   string
	}{
		{frameOf(`{"Message":"too slow"}`, ":message-type", "exception", ":exception-type", "ModelStreamError"), "ModelStreamError", "too slow"},
		{frameOf("", ":message-type", "error", ":error-code", "500", ":error-message", "broken"), "500", "broken"},
		{frameOf("", ":message-type", "exception"), "exception", ""},
	} {
		got, err := io.ReadAll(NewEventStreamReader(bytes.NewReader(append(payloadPart("x"), c.frame...))))
		var told *EventStreamError
		if !errors.As(err, &told) || told.Exception != c.exception || !strings.Contains(told.Message, c.message) || string(got) != "x" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// Hostile lengths cost no memory: what a message claims is read as it comes.
func TestEventStreamHostileLengths(t *testing.T) {
	head := func(total, headers uint32) []byte {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, total), headers)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	for _, b := range [][]byte{head(1<<32-1, 0), head(1<<24, 1<<23), head(20, 19), head(16, 16), head(1<<24, 0)} {
		if got, err := io.ReadAll(NewEventStreamReader(bytes.NewReader(b))); err == nil {
			t.Errorf("%x: got %q", b, got)
		}
	}
	broken := frameOf("x", "name", "value")
	broken[preludeLen] = 200 // a name beyond the headers
	binary.BigEndian.PutUint32(broken[len(broken)-4:], crc32.ChecksumIEEE(broken[:len(broken)-4]))
	if _, err := io.ReadAll(NewEventStreamReader(bytes.NewReader(broken))); err == nil || !strings.Contains(err.Error(), "headers are broken") {
		t.Error(err)
	}
}

func FuzzEventStream(f *testing.F) {
	f.Add(payloadPart("data: x\n\n"))
	f.Add(frameOf("x", ":message-type", "exception"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := io.ReadAll(NewEventStreamReader(bytes.NewReader(b)))
		again, err2 := io.ReadAll(iotest.DataErrReader(NewEventStreamReader(iotest.HalfReader(bytes.NewReader(b)))))
		if !bytes.Equal(got, again) || (err == nil) != (err2 == nil) {
			t.Errorf("%q, %v; in halves %q, %v", got, err, again, err2)
		}
		for n := preludeLen; n <= len(b); n++ { // headers of any bytes
			r := &EventStreamReader{}
			_ = r.take(b[:n], nil)
		}
	})
}

// JSON values a line, and over several lines.
func TestEventReaderLines(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
		cut        bool
		single     bool
	}{
		{"lines", "{\"a\":1}\n\n {\"b\":\"}{\\\"\"}\r\n[1]", []string{`{"a":1}`, ` {"b":"}{\""}`, `[1]`}, false, false},
		{"pretty", "{\n  \"a\": {\n  \"b\": 1}\n}\n", []string{"{\n  \"a\": {\n  \"b\": 1}\n}"}, false, true},
		{"cut", "{\"a\":1}\n{\"b\":", []string{`{"a":1}`, "{\"b\":\n"}, true, false},
		{"one", `{"a":1}`, []string{`{"a":1}`}, false, true},
		{"none", "\n \n", nil, false, false},
		{"more closed than opened", "}}\n{\n}", []string{"}}", "{\n}"}, false, false},
	} {
		for how, r := range map[string]io.Reader{"at once": strings.NewReader(c.body), "byte by byte": iotest.OneByteReader(strings.NewReader(c.body))} {
			e := NewEventReader(nil, 0)
			e.ResetLines(r)
			var got []string
			cut := false
			for {
				ev, err := e.Next()
				if err != nil {
					break
				}
				got, cut = append(got, string(ev.Data)), ev.Cut
			}
			if strings.Join(got, "|") != strings.Join(c.want, "|") || cut != c.cut || e.Single() != c.single {
				t.Errorf("%s %s: got %q, cut %v, single %v", c.name, how, got, cut, e.Single())
			}
		}
	}
}
