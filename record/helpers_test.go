package record

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content is what a container holds.
type content struct {
	header   Header
	requests []Request
	results  []Result
	series   []Series
	footer   Footer
	closed   bool // footer found
	loss     *CorruptError
}

// readAll reads all kinds from b, which stands for a file.
func readAll(b []byte) (c content, err error) {
	read := func(fn func(*Reader) error) {
		if err != nil {
			return
		}
		r, oerr := NewReader(bytes.NewReader(b))
		if oerr != nil {
			err = oerr
			return
		}
		defer r.Close()
		c.header = r.Header()
		if err = fn(r); err == nil && r.Loss() != nil {
			c.loss = r.Loss()
		}
		c.footer, c.closed = r.Footer()
	}
	read(func(r *Reader) (err error) { c.requests, err = collect(r.Requests()); return err })
	read(func(r *Reader) (err error) { c.results, err = collect(r.Results()); return err })
	read(func(r *Reader) (err error) { c.series, err = collect(r.Series()); return err })
	return c, err
}

func collect[T any](seq func(func(T, error) bool)) (all []T, err error) {
	seq(func(v T, e error) bool {
		if err = e; e == nil {
			all = append(all, v)
		}
		return e == nil
	})
	return all, err
}

// file writes a container, a chunk for each chunk records.
func file(tb testing.TB, c content, chunk int) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, c.header)
	if err != nil {
		tb.Fatal(err)
	}
	w.chunk = chunk
	for i := range c.requests {
		err = errors.Join(err, w.WriteRequest(&c.requests[i]))
	}
	for i := range c.results {
		err = errors.Join(err, w.WriteResult(&c.results[i]))
	}
	for i := range c.series {
		err = errors.Join(err, w.WriteSeries(&c.series[i]))
	}
	if err = errors.Join(err, w.Close(c.footer)); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// small is a container of 6 requests, 3 results and 1 series with something
// in every field; in chunks of 2 it has 3 + 2 + 1 chunks.
func small() content {
	c := content{header: Header{
		Kind: KindRecording, BlockSize: 16, Source: "mooncake", Unit: time.Millisecond, Namespace: "00ff",
		RunID: "run", Run: &Run{Start: time.Date(2025, 2, 3, 4, 5, 6, 7, time.UTC), URLs: []string{"http://a"}, Speed: 1.5},
	}}
	priority := int64(3)
	for i := range 6 {
		r := NewRequest()
		r.Arrival = time.Duration(i) * 3 * time.Second
		r.InputTokens, r.OutputTokens = int64(20+i), int64(5*i)
		r.Blocks = []uint64{1, uint64(2 + i)}
		r.Row = int64(i)
		c.requests = append(c.requests, r)
	}
	r := &c.requests[3]
	r.ID, r.Session, r.Parent, r.Turn, r.Delay, r.Increment = "x", "s", "2", 2, time.Second, true
	r.API, r.Body, r.Model, r.Kind, r.Priority = "chat", []byte(`{"messages":[]}`), "m", "text", &priority
	r.Media = []Media{{Kind: "image", Ref: "sha256:00", Bytes: Unknown}}
	r.Observed = Observed{Status: 200, Latency: time.Second, InputTokens: 4, OutputTokens: 5, Failed: true}
	r.Extra, r.Row = []byte(`{"a":1}`), 77
	r.Exceptions = []Exception{{"timestamp", []byte("9.0")}, {"turn", nil}, {"x", []byte{}}}
	for i := range 3 {
		r := NewResult()
		r.ID, r.State, r.Status = string(rune('a'+i)), Completed, 200
		r.Scheduled = time.Duration(i) * time.Second
		r.Sent = r.Scheduled + 150*time.Microsecond
		r.FirstOutput = r.Sent + 20*time.Millisecond
		r.Gaps = []Gap{{10 * time.Millisecond, 1}, {11 * time.Millisecond, Unknown}}
		r.LastOutput = r.FirstOutput + 21*time.Millisecond
		r.CompletionTokens, r.Output = 3, []byte("abc")
		c.results = append(c.results, r)
	}
	c.series = []Series{{
		Name: "vllm:num_requests_running", Labels: map[string]string{"model": "m", "engine": "0"},
		Times: []time.Duration{0, time.Second}, Values: []float64{1, math.Inf(1)},
	}}
	c.footer = Footer{Dropped: map[string]int64{"late": 2}, Interrupted: true, Notes: []string{"note"}}
	return c
}

// genRequest draws any request at all.
func genRequest(t *rapid.T, i int) Request {
	anyInt := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 5000), rapid.Just(int64(math.MinInt64)))
	text := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"a", "-1", "007", "12", "-0", "9223372036854775808", "-9223372036854775808"}), rapid.String())
	blob := rapid.OneOf(rapid.Just([]byte(nil)), rapid.Just([]byte{}), rapid.SliceOfN(rapid.Byte(), 0, 20))
	id := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 30), rapid.Just(uint64(math.MaxUint64)))
	r := NewRequest()
	r.Row = int64(i)
	r.Blocks = rapid.SliceOfN(id, 0, 12).Draw(t, "blocks")
	r.InputTokens = rapid.OneOf(anyInt, rapid.Just(int64(16*len(r.Blocks)-3))).Draw(t, "input")
	r.OutputTokens = anyInt.Draw(t, "output")
	r.Arrival = time.Duration(anyInt.Draw(t, "arrival"))
	if rapid.Bool().Draw(t, "plain") {
		return r
	}
	r.Row = anyInt.Draw(t, "row")
	r.Delay = time.Duration(anyInt.Draw(t, "delay"))
	r.ID, r.Session, r.Parent = text.Draw(t, "id"), text.Draw(t, "session"), text.Draw(t, "parent")
	r.Turn, r.Increment = int(anyInt.Draw(t, "turn")), rapid.Bool().Draw(t, "increment")
	r.API, r.Model, r.Kind = text.Draw(t, "api"), text.Draw(t, "model"), text.Draw(t, "kind")
	r.Body, r.Extra = blob.Draw(t, "body"), blob.Draw(t, "extra")
	r.Media = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Media {
		return Media{text.Draw(t, "kind"), text.Draw(t, "ref"), anyInt.Draw(t, "bytes")}
	}), 0, 3).Draw(t, "media")
	r.Exceptions = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Exception {
		return Exception{text.Draw(t, "field"), blob.Draw(t, "raw")}
	}), 0, 3).Draw(t, "exceptions")
	if rapid.Bool().Draw(t, "has priority") {
		p := anyInt.Draw(t, "priority")
		r.Priority = &p
	}
	r.Observed = Observed{
		int(anyInt.Draw(t, "status")), time.Duration(anyInt.Draw(t, "latency")),
		anyInt.Draw(t, "in"), anyInt.Draw(t, "out"), rapid.Bool().Draw(t, "failed"),
	}
	return r
}

// genResult draws any result at all, with times in whole microseconds.
func genResult(t *rapid.T) Result {
	anyInt := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 5000))
	at := rapid.OneOf(rapid.Just(NoTime), rapid.Map(rapid.Int64Range(-1<<52, 1<<52), func(v int64) time.Duration { return time.Duration(v/1000) * time.Microsecond }))
	text := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"stop", "12"}), rapid.String())
	r := NewResult()
	for _, m := range r.moments() {
		*m = at.Draw(t, "moment")
	}
	for _, n := range r.counts() {
		*n = anyInt.Draw(t, "count")
	}
	r.Connect = at.Draw(t, "connect")
	r.ServerQueue, r.ServerPrefill, r.ServerDecode = at.Draw(t, "queue"), at.Draw(t, "prefill"), at.Draw(t, "decode")
	r.Gaps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Gap { return Gap{at.Draw(t, "wait"), anyInt.Draw(t, "tokens")} }), 0, 5).Draw(t, "gaps")
	r.ChoiceFirsts = rapid.SliceOfN(at, 0, 3).Draw(t, "choices")
	r.Tries = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Try {
		return Try{at.Draw(t, "sent"), at.Draw(t, "pause"), int(anyInt.Draw(t, "status")), text.Draw(t, "class")}
	}), 0, 3).Draw(t, "tries")
	r.ID, r.Session, r.Model, r.Kind = text.Draw(t, "id"), text.Draw(t, "session"), text.Draw(t, "model"), text.Draw(t, "kind")
	r.Class, r.Reason, r.Error, r.FinishReason = text.Draw(t, "class"), text.Draw(t, "reason"), text.Draw(t, "error"), text.Draw(t, "finish")
	r.Turn, r.Status, r.Attempts = int(anyInt.Draw(t, "turn")), int(anyInt.Draw(t, "status")), int(anyInt.Draw(t, "attempts"))
	r.Replica, r.Shard = int(anyInt.Draw(t, "replica")), int(anyInt.Draw(t, "shard"))
	r.Mark, r.State = Mark(rapid.Byte().Draw(t, "mark")), State(rapid.Byte().Draw(t, "state"))
	r.Reused = rapid.Bool().Draw(t, "reused")
	r.Output = rapid.OneOf(rapid.Just([]byte(nil)), rapid.Just([]byte{}), rapid.SliceOf(rapid.Byte())).Draw(t, "output")
	return r
}

// expect fails the test where got is not want.
func expect[T any](tb interface {
	Helper()
	Fatalf(string, ...any)
}, got, want []T, same func(a, b *T) bool) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if !same(&want[i], &got[i]) {
			tb.Fatalf("record %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
