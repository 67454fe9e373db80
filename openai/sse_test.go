package openai

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// event is a copied Event.
type event struct{ kind, data, id string }

func readEvents(t testing.TB, r io.Reader, limit int) ([]event, error) {
	t.Helper()
	return collect(NewEventReader(r, limit))
}

func collect(er *EventReader) ([]event, error) {
	var got []event
	for {
		ev, err := er.Next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		kind := string(ev.Type)
		if ev.Cut {
			kind += "(cut)"
		}
		got = append(got, event{kind, string(ev.Data), string(ev.ID)})
	}
}

// Expected values: the WHATWG's HTML standard, §9.2.6, by hand; its own
// examples where named so.
var framing = []struct {
	name, in string
	want     []event
}{
	{"lf", "data: a\n\ndata: b\n\n", []event{{"", "a", ""}, {"", "b", ""}}},
	{"S01 crlf, no space", "data:{\"x\":1}\r\n\r\n", []event{{"", `{"x":1}`, ""}}},
	{"cr", "data: a\r\rdata: b\r\r", []event{{"", "a", ""}, {"", "b", ""}}},
	{"mixed ends", "data: a\r\ndata: b\rdata: c\n\r\n", []event{{"", "a\nb\nc", ""}}},
	{"cr then lf is one end", "data: a\r\n\ndata: b\n\n", []event{{"", "a", ""}, {"", "b", ""}}},
	{"S06 comment", ": ping\n\ndata: a\n\n", []event{{"", "a", ""}}},
	{"S06 empty data", "data: \n\n", []event{{"", "", ""}}},
	{"S06 fields", "event: message\nid: 7\nretry: 10\ndata: {\"a\":\ndata: 1}\n\n", []event{{"message", "{\"a\":\n1}", "7"}}},
	{"standard: stock", "data: YHOO\ndata: +2\ndata: 10\n\n", []event{{"", "YHOO\n+2\n10", ""}}},
	{"standard: four blocks", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
		[]event{{"", "first event", "1"}, {"", "second event", ""}, {"", " third event", ""}}},
	{"standard: empties", "data\n\ndata\ndata\n\ndata:", []event{{"", "", ""}, {"", "\n", ""}, {"(cut)", "", ""}}},
	{"standard: space after colon", "data:test\n\ndata: test\n\n", []event{{"", "test", ""}, {"", "test", ""}}},
	{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []event{{"", "a", ""}}},
	{"half a byte order mark", "\xEF\xBBdata: a\n\ndata: b\n\n", []event{{"", "b", ""}}},
	{"type without data", "event: ping\n\ndata: a\n\n", []event{{"", "a", ""}}},
	{"id with NUL", "id: 1\n\nid: a\x00b\ndata: x\n\n", []event{{"", "x", "1"}}},
	{"unknown field", "foo: bar\nDATA: no\ndata: x\n\n", []event{{"", "x", ""}}},
	{"cut in the last event", "data: a\n\ndata: [DONE]", []event{{"", "a", ""}, {"(cut)", "[DONE]", ""}}},
	{"one line end short", "data: [DONE]\n", []event{{"(cut)", "[DONE]", ""}}},
	{"S03 two-byte letter", "data: \xc3\xa9\n\n", []event{{"", "é", ""}}},
	{"empty", "", nil},
	{"blank lines", "\n\r\n\r", nil},
}

func TestEventReader(t *testing.T) {
	for _, c := range framing {
		t.Run(c.name, func(t *testing.T) {
			check := func(how string, r io.Reader) {
				t.Helper()
				got, err := readEvents(t, r, 0)
				if err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%s: got %q, %v; want %q", how, got, err, c.want)
				}
			}
			check("at once", strings.NewReader(c.in))
			check("byte by byte", iotest.OneByteReader(strings.NewReader(c.in)))
			check("with data and error", iotest.DataErrReader(strings.NewReader(c.in)))
			for i := range c.in {
				check("split", io.MultiReader(strings.NewReader(c.in[:i]), strings.NewReader(c.in[i:])))
			}
		})
	}
}

// An event must not wait for what follows it: with a bare CR, or a CRLF cut in
// two, the reader delivers without another read.
func TestEventReaderDeliversAtLastByte(t *testing.T) {
	for _, in := range []string{"data: a\n\n", "data: a\r\r", "data: a\r\n\r"} {
		er := NewEventReader(io.MultiReader(strings.NewReader(in), iotest.ErrReader(errors.New("read too far"))), 0)
		ev, err := er.Next()
		if err != nil || string(ev.Data) != "a" || ev.Cut {
			t.Errorf("%q: got %q, %v", in, ev.Data, err)
		}
	}
}

func TestEventReaderLimit(t *testing.T) {
	line := "data: " + strings.Repeat("x", 100_000) + "\n\n"
	many := strings.Repeat("data: xxxxxxxx\n", 10_000) + "\n"
	for _, in := range []string{line, many} {
		if _, err := readEvents(t, strings.NewReader(in), 50_000); !errors.Is(err, ErrEventTooLarge) {
			t.Errorf("limit 50000: got %v", err)
		}
		if got, err := readEvents(t, strings.NewReader(in), 500_000); err != nil || len(got) != 1 {
			t.Errorf("limit 500000: got %d events, %v", len(got), err)
		}
	}
}

func TestEventReaderKeepsSourceError(t *testing.T) {
	boom := errors.New("boom")
	got, err := readEvents(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(boom)), 0)
	want := []event{{"", "a", ""}, {"(cut)", "b", ""}}
	if !errors.Is(err, boom) || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := readEvents(t, stuck{}, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader that gives nothing: got %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestEventReaderAllocs(t *testing.T) {
	in := bytes.Repeat([]byte("data: {\"choices\":[{\"text\":\"x\"}]}\n\n"), 100)
	src := bytes.NewReader(in)
	er := NewEventReader(src, 0)
	n := testing.AllocsPerRun(100, func() {
		src.Reset(in)
		er.Reset(src)
		for {
			if _, err := er.Next(); err != nil {
				break
			}
		}
	})
	if n != 0 {
		t.Errorf("100 events: %v allocations, want 0", n)
	}
}

// slowEvents is the standard's algorithm on the whole text, written anew.
func slowEvents(in string) []event {
	in = strings.TrimPrefix(in, "\xEF\xBB\xBF")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(in, "\n")
	tail := lines[len(lines)-1] // not ended; "" where all were
	var got []event
	var data []string
	var kind, id string
	each := func(line string) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			data = append(data, value)
		case "event":
			kind = value
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		}
	}
	for _, line := range lines[:len(lines)-1] {
		if line != "" {
			each(line)
			continue
		}
		if data != nil {
			got = append(got, event{kind, strings.Join(data, "\n"), id})
		}
		data, kind = nil, ""
	}
	if tail != "" {
		each(tail)
	}
	if data != nil {
		got = append(got, event{kind + "(cut)", strings.Join(data, "\n"), id})
	}
	return got
}

func FuzzEventReader(f *testing.F) {
	for _, c := range framing {
		f.Add([]byte(c.in), uint8(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		want := slowEvents(string(in))
		got, err := readEvents(t, &stepReader{in, int(step)%7 + 1}, 1<<20)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	})
}

type stepReader struct {
	b    []byte
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[:min(r.step, len(r.b))])
	r.b = r.b[n:]
	return n, nil
}

// chatChunk is a chunk of chat completions as vLLM sends it.
const chatChunk = `{"id":"chatcmpl-8f3a5d9e379e5091","object":"chat.completion.chunk","created":1796060542,"model":"tiny",` +
	`"choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`

func TestForeign(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "data: x\n\n": false, ": ping\n": false, "retry: 3\n": false, "dat": false, "event": false, "i": false,
		"upstream connect error": true, "database is down\n": true, "error: x\n": true, "foo: bar\ndata: x\n\n": false,
	} {
		r := NewEventReader(strings.NewReader(text), 0)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
		if got := r.Foreign(); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
