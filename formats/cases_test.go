package formats_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrace/formats"
	"retrace/record"
)

const ms = time.Millisecond

// TestRefusedRows holds rows that must be refused, and what the error has to say.
func TestRefusedRows(t *testing.T) {
	good := `{"timestamp":0,"input_length":10,"output_length":1,"hash_ids":[1]}` + "\n"
	for _, c := range []struct {
		name, row string
		say       []string
	}{
		{"T11 block size too small", `{"timestamp":0,"input_length":1300,"output_length":4,"hash_ids":[7,8]}`,
			[]string{`"hash_ids"`, "2 ids for 1300 tokens", "1 block short", "--block-size 650–1299 would fit"}},
		{"T12 a block too many", `{"timestamp":0,"input_length":512,"output_length":4,"hash_ids":[7,8]}`, []string{"1 block too many"}},
		{"T15 two kinds of input", `{"timestamp":0,"input_length":5,"messages":[]}`, []string{"both input_length and messages"}},
		{"T15 none", `{"timestamp":0,"output_length":4}`, []string{"exactly one of input_length, text_input, messages, payload"}},
		{"T15 ids beside text", `{"timestamp":0,"text_input":"x","hash_ids":[1]}`, []string{"hash_ids with input_length only"}},
		{"T21 no time", `{"input_length":10}`, []string{`field "timestamp"`, "1 of 2 rows have none"}},
		{"T21 delay of a first turn", `{"session_id":"a","delay":5,"input_length":10}`, []string{"no earlier turn"}},
		{"T22 negative", `{"timestamp":-5,"input_length":10}`, []string{`"timestamp"`, "-5", "out of range"}},
		{"T22 NaN", `{"timestamp":"NaN","input_length":10}`, []string{`"timestamp"`, `"NaN"`, "a number from 0 up (milliseconds)"}},
		{"T22 bare NaN", `{"timestamp":NaN,"input_length":10}`, []string{"found NaN", "expected a JSON value"}},
		{"T22 infinite", `{"timestamp":1e400,"input_length":10}`, []string{"1e400", "out of range"}},
		{"T22 beyond 292 years", `{"timestamp":1e16,"input_length":10}`, []string{"1e16", "out of range"}},
		{"T27 negative id", `{"timestamp":0,"input_length":10,"hash_ids":[-1]}`, []string{`"hash_ids"`, "-1", "2^64"}},
		{"T27 id of 2^64", `{"timestamp":0,"input_length":10,"hash_ids":[18446744073709551616]}`, []string{"18446744073709551616"}},
		{"T27 fraction as id", `{"timestamp":0,"input_length":10,"hash_ids":[1.5]}`, []string{"1.5"}},
		{"ids that are no array", `{"timestamp":0,"input_length":10,"hash_ids":{"a":1}}`, []string{"an array of integers"}},
		{"T39 duplicate key", `{"timestamp":0,"input_length":5,"input_length":9}`, []string{`found key "input_length" twice, expected each key once`}},
		{"T39 duplicate key inside", `{"timestamp":0,"input_length":5,"extra":{"a":1,"a":2}}`, []string{`found key "a" twice`}},
		{"T39 other case", `{"timestamp":0,"INPUT_LENGTH":5}`, []string{"exactly one of"}},
		{"T40 trailing comma", `{"timestamp":1,"input_length":10,}`, []string{"found }, expected a key in double quotes"}},
		{"T40 comment", `# comment`, []string{"found # comment, expected a JSON object"}},
		{"an array", `[1,2]`, []string{"found [1,2], expected a JSON object"}},
		{"two objects", `{"timestamp":1,"input_length":10} {}`, []string{"found {}, expected nothing after the JSON object"}},
		{"no UTF-8", "{\"timestamp\":1,\"input_length\":10,\"x\":\"\xff\"}", []string{"UTF-8"}},
		{"cut", `{"timestamp":1,"input_le`, []string{"found the end of the row, expected the end of the string"}},
		{"length as string", `{"timestamp":1,"input_length":"10"}`, []string{`"input_length"`, "an integer from 0 up"}},
		{"half a token", `{"timestamp":1,"input_length":10.5}`, []string{"10.5", "not an integer"}},
		{"leading zero", `{"timestamp":1,"input_length":010}`, []string{"leading zero"}},
		{"session is an object", `{"timestamp":1,"input_length":1,"session_id":{}}`, []string{`"session_id"`, "a string"}},
		{"text is a number", `{"timestamp":1,"text_input":5}`, []string{`"text_input"`}},
		{"messages are a string", `{"timestamp":1,"messages":"hi"}`, []string{`"messages"`}},
		{"payload is a list", `{"timestamp":1,"payload":[]}`, []string{`"payload"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			msg := refused(t, good+c.row+"\n", formats.Options{})
			contains(t, msg, append(c.say, "in.jsonl: line 2 (byte ")...)
			got := openText(t, good+c.row+"\n"+good, formats.Options{BadLines: formats.Skip})
			if len(got.reqs) != 2 || got.report.Read != 3 || got.report.SkippedRows() != 1 {
				t.Errorf("skip: %d requests, %d rows read, %d skipped", len(got.reqs), got.report.Read, got.report.SkippedRows())
			}
		})
	}
}

// TestTakenRows holds rows that must be taken, and what becomes of them.
func TestTakenRows(t *testing.T) {
	type want struct {
		arrival, delay time.Duration
		in, out        int64
		blocks         int
		failed         bool
	}
	for _, c := range []struct {
		name, row string
		size      int
		want      want
	}{
		{"T11 fits 512", `{"timestamp":0,"input_length":1300,"output_length":4,"hash_ids":[7,8,9]}`, 0, want{0, record.NoTime, 1300, 4, 3, false}},
		{"T12 partial block", `{"timestamp":0,"input_length":20,"output_length":4,"hash_ids":[1,2]}`, 16, want{0, record.NoTime, 20, 4, 2, false}},
		{"T12 whole blocks", `{"timestamp":0,"input_length":32,"output_length":4,"hash_ids":[1,2]}`, 16, want{0, record.NoTime, 32, 4, 2, false}},
		{"T14 empty ids", `{"timestamp":0,"input_length":900,"output_length":3,"hash_ids":[]}`, 0, want{0, record.NoTime, 900, 3, 0, false}},
		{"T14 no ids", `{"timestamp":0,"input_length":900,"output_length":3}`, 0, want{0, record.NoTime, 900, 3, 0, false}},
		{"T16 no output", `{"timestamp":0,"input_length":9}`, 0, want{0, record.NoTime, 9, record.Unknown, 0, false}},
		{"T16 null output", `{"timestamp":0,"input_length":9,"output_length":null}`, 0, want{0, record.NoTime, 9, record.Unknown, 0, false}},
		{"T16 output 0", `{"timestamp":0,"input_length":9,"output_length":0}`, 0, want{0, record.NoTime, 9, 0, 0, true}},
		{"T02 input 0", `{"timestamp":0,"input_length":0,"output_length":7}`, 0, want{0, record.NoTime, 0, 7, 0, true}},
		{"odd literals", `{"timestamp":0e5,"input_length":1.2e1,"output_length":-0}`, 0, want{0, record.NoTime, 12, 0, 0, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := openText(t, c.row, formats.Options{BlockSize: c.size})
			r := got.reqs[0]
			have := want{r.Arrival, r.Delay, r.InputTokens, r.OutputTokens, len(r.Blocks), r.Observed.Failed}
			if have != c.want {
				t.Errorf("got %+v, want %+v", have, c.want)
			}
			if got.header.PrefixSynthesised != (c.want.blocks == 0) {
				t.Errorf("PrefixSynthesised is %v", got.header.PrefixSynthesised)
			}
		})
	}
}

// T11 with the wrong --block-size, T12 with 33 tokens in two blocks of 16.
func TestBlockSizeFlag(t *testing.T) {
	msg := refused(t, `{"timestamp":0,"input_length":1300,"output_length":4,"hash_ids":[7,8,9]}`, formats.Options{BlockSize: 16})
	contains(t, msg, "--block-size 434–649 would fit", "512")
	msg = refused(t, `{"timestamp":0,"input_length":33,"output_length":4,"hash_ids":[1,2]}`, formats.Options{BlockSize: 16})
	contains(t, msg, "1 block short")
}

// T16: a value must not leak into the next row.
func TestNullAfterValue(t *testing.T) {
	got := openText(t, `{"timestamp":0,"input_length":1,"output_length":7}
{"timestamp":0,"input_length":1,"output_length":null}
{"timestamp":0,"input_length":1}`, formats.Options{})
	for i, want := range []int64{7, record.Unknown, record.Unknown} {
		if got.reqs[i].OutputTokens != want {
			t.Errorf("row %d: output %d, want %d", i+1, got.reqs[i].OutputTokens, want)
		}
	}
}

// T04: the first time is not zero.
func TestOrigin(t *testing.T) {
	got := openText(t, `{"timestamp":1178625,"input_length":40,"output_length":2,"hash_ids":[1]}`, formats.Options{})
	if got.reqs[0].Arrival != 0 || got.header.Origin != 1178625*ms {
		t.Errorf("arrival %s, origin %s", got.reqs[0].Arrival, got.header.Origin)
	}
	contains(t, strings.Join(got.report.Notes, "\n"), "origin: offset 0 is at 1178625 ms on the source's clock")
}

// T05: the unit belongs to the format, and --time-unit overrides it.
func TestTimeUnit(t *testing.T) {
	rows := `{"timestamp":27482,"input_length":1,"output_length":1}
{"timestamp":30535,"input_length":1,"output_length":1}`
	for unit, want := range map[time.Duration]time.Duration{
		0: 3053 * time.Millisecond, time.Second: 3053 * time.Second, time.Microsecond: 3053 * time.Microsecond,
	} {
		if got := openText(t, rows, formats.Options{Unit: unit}); got.figures.Span() != want {
			t.Errorf("unit %s: span %s, want %s", unit, got.figures.Span(), want)
		}
	}
}

// T09: a clock restart is named and needs a choice.
func TestClockRestart(t *testing.T) {
	rows := string(fixture(t, "bad/mooncake_clock_restart.jsonl")) // 100 s, 104 s, 0 s, 3 s
	contains(t, refused(t, rows, formats.Options{}), "clock restart at row 3", "1m44s", "append", "sort")
	at := func(choice string) (list []time.Duration) {
		for _, r := range openText(t, rows, formats.Options{ClockRestart: choice}).reqs {
			list = append(list, r.Arrival)
		}
		return list
	}
	s := time.Second
	if d := cmp.Diff([]time.Duration{0, 4 * s, 4 * s, 7 * s}, at(formats.RestartAppend)); d != "" {
		t.Errorf("append: %s", d)
	}
	if d := cmp.Diff([]time.Duration{0, 3 * s, 100 * s, 104 * s}, at(formats.RestartSort)); d != "" {
		t.Errorf("sort: %s", d)
	}
}

// T09: small steps back are sorted, stable, and counted.
func TestInversions(t *testing.T) {
	got := openText(t, `{"timestamp":3000,"input_length":1,"output_length":1}
{"timestamp":1000,"input_length":2,"output_length":1}
{"timestamp":3000,"input_length":3,"output_length":1}
{"timestamp":1000,"input_length":4,"output_length":1}
{"timestamp":2000,"input_length":5,"output_length":1}`, formats.Options{})
	var order []int64
	for _, r := range got.reqs {
		order = append(order, r.InputTokens)
	}
	if d := cmp.Diff([]int64{2, 4, 5, 1, 3}, order); d != "" {
		t.Error(d)
	}
	if got.header.Origin != 1000*ms || got.reqs[4].Arrival != 2000*ms {
		t.Errorf("origin %s, last arrival %s", got.header.Origin, got.reqs[4].Arrival)
	}
	contains(t, strings.Join(got.report.Notes, "\n"), "3 rows out of order (largest step back 2s)")
}

// A shuffled file and one grouped by session are no clock restarts.
func TestNoClockRestart(t *testing.T) {
	for name, rows := range map[string]string{
		"shuffled": `{"timestamp":500000,"input_length":1}
{"timestamp":100,"input_length":1}
{"timestamp":400000,"input_length":1}
{"timestamp":200,"input_length":1}
{"timestamp":300000,"input_length":1}`,
		"by session": `{"timestamp":0,"session_id":"a","input_length":1}
{"timestamp":90000,"session_id":"a","input_length":1}
{"timestamp":10,"session_id":"b","input_length":1}
{"timestamp":90010,"session_id":"b","input_length":1}`,
	} {
		if got := openText(t, rows, formats.Options{}); got.reqs[0].Arrival != 0 {
			t.Errorf("%s: first arrival %s", name, got.reqs[0].Arrival)
		}
	}
}

// T10: rows of one instant all stay, in file order.
func TestOneInstant(t *testing.T) {
	got := openText(t, `{"timestamp":3000,"input_length":1}
{"timestamp":3000,"input_length":2}
{"timestamp":3000,"input_length":3}
{"timestamp":3000,"input_length":4}`, formats.Options{})
	for i, r := range got.reqs {
		if r.InputTokens != int64(i+1) || r.Arrival != 0 {
			t.Errorf("request %d: %d tokens at %s", i, r.InputTokens, r.Arrival)
		}
	}
}

// T17: full and increment, taken as said, never guessed silently.
func TestTurns(t *testing.T) {
	rows := `{"session_id":"s","timestamp":0,"input_length":520,"output_length":132,"hash_ids":[1,2]}
{"session_id":"s","timestamp":5000,"input_length":24,"output_length":9,"hash_ids":[3]}`
	for turns, want := range map[string]bool{"": false, formats.TurnsFull: false, formats.TurnsIncrement: true} {
		got := openText(t, rows, formats.Options{Turns: turns})
		if got.reqs[0].Increment || got.reqs[1].Increment != want || got.reqs[1].Turn != 2 {
			t.Errorf("--turns %q: %+v", turns, got.reqs[1])
		}
		word := map[bool]string{false: "full", true: "increment"}[want]
		if got.header.Turns != word {
			t.Errorf("--turns %q: header says %q", turns, got.header.Turns)
		}
		contains(t, strings.Join(got.report.Notes, "\n"), "turns: "+word)
	}
}

// T17: turns with a delay whose blocks start like the first turn look full.
func TestTurnsLookFull(t *testing.T) {
	got := openText(t, `{"session_id":"s","timestamp":0,"input_length":520,"output_length":132,"hash_ids":[1,2]}
{"session_id":"s","delay":50,"input_length":676,"output_length":9,"hash_ids":[1,3]}`, formats.Options{})
	contains(t, strings.Join(got.report.Warnings, "\n"), "--turns full")
}

// T18: a later turn starts its delay after the end of the one before.
func TestDelay(t *testing.T) {
	got := openText(t, `{"session_id":"s1","input_length":900,"output_length":5,"hash_ids":[1,2],"timestamp":0.0,"group_id":4}
{"timestamp":900,"input_length":1}
{"session_id":"s1","input_length":70,"output_length":9,"hash_ids":[3],"delay":1219.3}`, formats.Options{})
	second := got.reqs[1]
	if second.Row != 2 || second.Delay != 1219300*time.Microsecond || second.Arrival != record.NoTime || !second.Increment {
		t.Errorf("the delayed turn: %+v", second)
	}
	if got.header.DelayMeaning == "" || got.header.Turns != "increment" {
		t.Errorf("header: %+v", got.header)
	}
}

// T20: a follow-up need not contain its parent's output.
func TestFollowUp(t *testing.T) {
	got := openText(t, `{"session_id":"s","timestamp":0,"input_length":40,"output_length":5,"hash_ids":[1,2,3]}
{"session_id":"s","timestamp":10,"input_length":60,"output_length":5,"hash_ids":[1,2,8,9]}`, formats.Options{BlockSize: 16})
	if len(got.reqs) != 2 || got.reqs[1].Increment {
		t.Errorf("%+v", got.reqs)
	}
}

// T24: unknown fields are listed once, with counts, and kept.
func TestUnknownFields(t *testing.T) {
	got := openText(t, `{"timestamp":0,"input_length":1,"tier":"a"}
{"timestamp":0,"input_length":1,"tier":"b","priority":3}`, formats.Options{})
	if got.report.Unknown["tier"] != 2 || len(got.report.Unknown) != 1 {
		t.Errorf("unknown: %v", got.report.Unknown)
	}
	if p := got.reqs[1].Priority; p == nil || *p != 3 {
		t.Errorf("priority %v", p)
	}
	if string(got.reqs[1].Extra) != `{"tier":"b"}` {
		t.Errorf("extra %s", got.reqs[1].Extra)
	}
}

// T27: ids beyond 2^53 are exact.
func TestBigIDs(t *testing.T) {
	got := openText(t, `{"timestamp":0,"input_length":1000,"hash_ids":[9007199254740993,18446744073709551615]}`, formats.Options{})
	if d := cmp.Diff([]uint64{9007199254740993, 18446744073709551615}, got.reqs[0].Blocks); d != "" {
		t.Error(d)
	}
}

// T15: rows with text, messages or a payload are sent as they say.
func TestBodies(t *testing.T) {
	got := openText(t, `{"timestamp":0,"text_input":"hello there","output_length":4}
{"timestamp":1,"messages":[{"role":"user","content":"hi"}],"tools":[1],"extra":{"temperature":0.50,"max_tokens":9}}
{"timestamp":2,"payload":{ "messages": [], "model":"m" }}
{"timestamp":3,"text_input":"x","output_length":0}`, formats.Options{})
	for i, want := range []struct{ api, body string }{
		{"completions", `{"prompt":"hello there","max_tokens":4}`},
		{"chat", `{"messages":[{"role":"user","content":"hi"}],"tools":[1],"temperature":0.50,"max_tokens":9}`},
		{"chat", `{ "messages": [], "model":"m" }`},
		{"completions", `{"prompt":"x"}`},
	} {
		if r := got.reqs[i]; r.API != want.api || string(r.Body) != want.body {
			t.Errorf("row %d: %s %s, want %s %s", i+1, r.API, r.Body, want.api, want.body)
		}
	}
}

// The published trace: the sums that its publishers and the case list give.
func TestPublishedTrace(t *testing.T) {
	const path = "../../shared/data/mooncake/conversation_trace.jsonl"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the published Mooncake trace is not here: %v", err)
	}
	got, err := openAll(t, []string{path}, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	unique := map[uint64]bool{}
	for _, r := range got.reqs {
		for _, id := range r.Blocks {
			unique[id] = true
		}
	}
	f := got.figures
	sums := []int64{f.Requests, f.Input, f.Output, f.Blocks, int64(len(unique))}
	if d := cmp.Diff([]int64{12031, 144793823, 4122048, 288500, 182790}, sums); d != "" {
		t.Error(d)
	}
	if got.header.Quantum != 3*time.Second {
		t.Errorf("quantum %s", got.header.Quantum)
	}
}
