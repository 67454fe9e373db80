package prompt

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retrace/record"
)

// newPredictor makes a Predictor or fails the test.
func newPredictor(t testing.TB, cfg PredictorConfig) *Predictor {
	t.Helper()
	p, err := NewPredictor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRepeatedPrompt has what a vLLM server showed for a prompt sent twice, at
// block size 16: the last token is never a hit.
func TestRepeatedPrompt(t *testing.T) {
	m := newMaker(t, Config{BlockSize: 512})
	for length, want := range map[uint32]int64{16: 0, 17: 16, 48: 32, 63: 48, 64: 48, 65: 64, 79: 64, 80: 64, 81: 80} {
		p := newPredictor(t, PredictorConfig{Maker: m, BlockSize: 16})
		prompt := NewPrompt(Segment{Key: 1, N: length})
		if got := p.Add(prompt); got != 0 {
			t.Errorf("length %d: first prompt hits %d", length, got)
		}
		for range 2 {
			if got := p.Add(prompt); got != want {
				t.Errorf("length %d: repeated prompt hits %d, want %d", length, got, want)
			}
		}
		if hits, tokens := p.Totals(); hits != 2*want || tokens != 3*int64(length) {
			t.Errorf("length %d: totals %d of %d, want %d of %d", length, hits, tokens, 2*want, 3*length)
		}
	}
}

// TestPredict has the cases by hand: blocks of 100 tokens, server blocks of 16.
func TestPredict(t *testing.T) {
	block := func(id uint64, n uint32) Segment { return Segment{Key: id, N: n} }
	tail := func(key uint64, n uint32) Segment { return Segment{Key: key, N: n, Kind: Tail} }
	type sent struct {
		segs []Segment
		want int64
	}
	for name, c := range map[string]struct {
		head, overhead int
		prompts        []sent
	}{
		"partial, then whole": {prompts: []sent{
			{[]Segment{block(1, 100), block(2, 60)}, 0},
			{[]Segment{block(1, 100), block(2, 100), block(3, 50)}, 160},  // 160 shared
			{[]Segment{block(1, 100), block(2, 100), block(3, 100)}, 240}, // 250 shared
		}},
		"whole, then partial": {prompts: []sent{
			{[]Segment{block(1, 100), block(2, 100)}, 0},
			{[]Segment{block(1, 100), block(2, 60)}, 144}, // 160 shared, but the last token is computed
			{[]Segment{block(1, 100), block(2, 61)}, 160},
		}},
		"shorter partial, then longer, then between": {prompts: []sent{
			{[]Segment{block(1, 40)}, 0},
			{[]Segment{block(1, 90)}, 32},  // 40 shared
			{[]Segment{block(1, 70)}, 64},  // 70 shared
			{[]Segment{block(1, 100)}, 80}, // 90 shared
		}},
		"a short one after a long one forgets nothing": {prompts: []sent{
			{[]Segment{block(1, 90)}, 0},
			{[]Segment{block(1, 20)}, 16},
			{[]Segment{block(1, 95)}, 80},
		}},
		"siblings": {prompts: []sent{
			{[]Segment{block(1, 100), block(2, 100)}, 0},
			{[]Segment{block(1, 100), block(3, 100)}, 96},
		}},
		"same id behind another": {prompts: []sent{
			{[]Segment{block(1, 100), block(2, 100)}, 0},
			{[]Segment{block(3, 100), block(2, 100)}, 0},
			{[]Segment{block(2, 100)}, 0},
		}},
		"tails are unique": {prompts: []sent{
			{[]Segment{tail(1, 100)}, 0},
			{[]Segment{tail(2, 100)}, 0},
			{[]Segment{tail(1, 60), {Key: 1, N: 40, Kind: Output}, tail(3, 20)}, 48},
			{[]Segment{tail(1, 60), {Key: 1, N: 40, Kind: Output}, tail(4, 20)}, 96},
		}},
		"template": {head: 3, overhead: 8, prompts: []sent{
			{[]Segment{block(1, 100)}, 0},
			{[]Segment{block(1, 100)}, 96}, // 3 + 100 of 108
			{[]Segment{block(1, 29)}, 32},  // 3 + 29 of 37
			{[]Segment{block(1, 28)}, 16},  // 3 + 28 of 36
		}},
		"long head": {head: 35, overhead: 40, prompts: []sent{
			{[]Segment{tail(1, 10)}, 32}, // the probe that told the head has put it there
			{[]Segment{tail(2, 10)}, 32},
		}},
		"empty prompt": {prompts: []sent{{nil, 0}, {[]Segment{block(1, 1)}, 0}, {nil, 0}}},
	} {
		m := newMaker(t, Config{Namespace: name, BlockSize: 100})
		p := newPredictor(t, PredictorConfig{Maker: m, BlockSize: 16, Head: c.head, Overhead: c.overhead})
		for i, s := range c.prompts {
			if got := p.Add(NewPrompt(s.segs...)); got != s.want {
				t.Errorf("%s: prompt %d hits %d, want %d", name, i, got, s.want)
			}
		}
	}
}

func TestNewPredictorRefuses(t *testing.T) {
	m := newMaker(t, Config{})
	for want, cfg := range map[string]PredictorConfig{
		"no maker":             {BlockSize: 16},
		"server block size 0":  {Maker: m},
		"head of -1":           {Maker: m, BlockSize: 16, Head: -1},
		"overhead of 2 tokens": {Maker: m, BlockSize: 16, Head: 3, Overhead: 2},
	} {
		if _, err := NewPredictor(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// tokenOracle predicts from the tokens themselves, by the definition: the
// longest prefix shared with any earlier prompt.
type tokenOracle struct {
	cfg  PredictorConfig
	sent [][]uint32
}

// Add does what Predictor.Add does.
func (o *tokenOracle) Add(p Prompt) int64 {
	var ids []uint32
	if o.cfg.Text {
		ids = make([]uint32, 0, p.tokens)
		var buf [chunk]uint32
		for c := (cursor{segs: p.segs}); c.more(); {
			ids = append(ids, o.cfg.Maker.words.next(&c, &buf)...)
		}
	} else {
		ids = o.cfg.Maker.AppendTokenIDs(nil, p)
	}
	tokens := len(ids)
	for i := range o.cfg.Overhead - o.cfg.Head {
		ids = append(ids, MaxVocab+1+uint32(i)) // the template behind it
	}
	shared := 0
	for _, earlier := range o.sent {
		n := 0
		for n < min(len(ids), len(earlier)) && ids[n] == earlier[n] {
			n++
		}
		shared = max(shared, n)
	}
	o.sent = append(o.sent, ids)
	size := o.cfg.BlockSize
	return int64(size) * int64(max(0, min((o.cfg.Head+shared)/size, (tokens+o.cfg.Overhead-1)/size)))
}

// TestPredictorAgainstTokens compares with the oracle where heads collide all
// the time: a vocabulary of 40 tokens, hundreds of siblings.
func TestPredictorAgainstTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := New(Config{Namespace: rapid.String().Draw(t, "namespace"), BlockSize: 24, VocabLo: 1, VocabHi: 40})
		if err != nil {
			t.Fatal(err)
		}
		cfg := PredictorConfig{Maker: m, BlockSize: rapid.IntRange(1, 20).Draw(t, "server block")}
		cfg.Head = rapid.IntRange(0, 20).Draw(t, "head")
		cfg.Overhead = cfg.Head + rapid.IntRange(0, 5).Draw(t, "template's rest")
		cfg.Text = rapid.Bool().Draw(t, "text")
		compareWithOracle(t, cfg, rapid.Uint64().Draw(t, "seed"))
	})
}

// compareWithOracle sends 100 random prompts to both: chains over few or many
// ids, the last block partial at times, or a tail behind them.
func compareWithOracle(t *rapid.T, cfg PredictorConfig, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	predictor, err := NewPredictor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	oracle := &tokenOracle{cfg: cfg}
	planner := NewPlanner(record.Header{BlockSize: cfg.Maker.blockSize})
	spread := []uint64{3, 30, 1 << 60}[rng.IntN(3)]
	for row := range int64(100) {
		blocks := make([]uint64, rng.IntN(4))
		for i := range blocks {
			blocks[i] = rng.Uint64N(spread)
			if rng.IntN(2) == 0 {
				blocks[i] = 7
			}
		}
		input := max(0, int64(len(blocks)*cfg.Maker.blockSize)-rng.Int64N(12)+rng.Int64N(12)*int64(rng.IntN(2)))
		prompt, err := planner.Plan(request(row, input, 1, blocks...))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := predictor.Add(prompt), oracle.Add(prompt); got != want {
			t.Fatalf("prompt %d %v: %d hits, tokens say %d", row, prompt.segs, got, want)
		}
	}
}

// TestPredictorOnSessions compares with the oracle on increments, in the
// default vocabulary.
func TestPredictorOnSessions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 16, 32} {
		cfg := PredictorConfig{Maker: newMaker(t, Config{Namespace: "sessions", BlockSize: 20}), BlockSize: size}
		predictor, oracle := newPredictor(t, cfg), &tokenOracle{cfg: cfg}
		planner := NewPlanner(record.Header{BlockSize: 20, Turns: "increment"})
		for row := range int64(400) {
			r := inSession(request(row, rng.Int64N(50), rng.Int64N(30), rng.Uint64N(3), rng.Uint64N(3)), string(rune('a'+rng.IntN(20))))
			prompt := plan(t, planner, r)
			if got, want := predictor.Add(prompt), oracle.Add(prompt); got != want {
				t.Errorf("block size %d, row %d: %d hits, tokens say %d", size, row, got, want)
			}
		}
	}
}

// eachMooncake plans the first limit requests of the real trace, cut to so
// many tokens of input, or skips the test where the trace is not at hand.
func eachMooncake(t testing.TB, limit, inputCap int, f func(Prompt)) {
	t.Helper()
	file, err := os.Open("../../../shared/data/mooncake/conversation_trace.jsonl")
	if err != nil {
		t.Skip("the real Mooncake trace is not at hand: ", err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	planner := NewPlanner(record.Header{BlockSize: 512})
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for row := 0; row < limit && lines.Scan(); row++ {
		var line struct {
			InputLength int64    `json:"input_length"`
			HashIDs     []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		f(plan(t, planner, request(int64(row), line.InputLength, 16, line.HashIDs...)).Truncate(inputCap))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestMooncakeHits: what a vLLM server of block size 16 counted for the first
// 200 requests of the conversation trace cut to 4,096 tokens, 122,288 of
// 671,702; and what a model of blocks of 32 gives for them, 122,208.
func TestMooncakeHits(t *testing.T) {
	m := newMaker(t, Config{Namespace: "mooncake", BlockSize: 512})
	for _, text := range []bool{false, true} {
		for size, want := range map[int]int64{16: 122_288, 32: 122_208} {
			cfg := PredictorConfig{Maker: m, BlockSize: size, Text: text}
			predictor, oracle := newPredictor(t, cfg), &tokenOracle{cfg: cfg}
			eachMooncake(t, 200, 4096, func(p Prompt) {
				if got, want := predictor.Add(p), oracle.Add(p); got != want {
					t.Errorf("block size %d: %d hits, tokens say %d", size, got, want)
				}
			})
			if hits, tokens := predictor.Totals(); hits != want || tokens != 671_702 {
				t.Errorf("block size %d: %d hits of %d, want %d of 671,702", size, hits, tokens, want)
			}
		}
	}
}

// TestMooncakeWhole: the whole trace against server blocks of 512. The figures
// are those of a few lines of Python over (id, predecessors) pairs.
func TestMooncakeWhole(t *testing.T) {
	m := newMaker(t, Config{Namespace: "mooncake", BlockSize: 512})
	p := newPredictor(t, PredictorConfig{Maker: m, BlockSize: 512})
	eachMooncake(t, 1<<30, 1<<30, func(prompt Prompt) { p.Add(prompt) })
	if hits, tokens := p.Totals(); hits != 54_063_104 || tokens != 144_793_823 {
		t.Errorf("%d hits of %d, want 54,063,104 of 144,793,823", hits, tokens)
	}
}

func BenchmarkPredict(b *testing.B) {
	m := newMaker(b, Config{BlockSize: 512})
	p := newPredictor(b, PredictorConfig{Maker: m, BlockSize: 16})
	planner := NewPlanner(record.Header{BlockSize: 512})
	b.ReportAllocs()
	var ids [8]uint64
	for i := uint64(0); b.Loop(); i++ {
		for j := range ids {
			ids[j] = i*8 + uint64(j)
		}
		p.Add(plan(b, planner, request(int64(i), 4096, 1, ids[:]...)))
	}
}

// TestPredictAdapters: prompts to different adapters share nothing, be they
// empty; the first to each finds not even the template's head.
func TestPredictAdapters(t *testing.T) {
	m := newMaker(t, Config{BlockSize: 512})
	p := newPredictor(t, PredictorConfig{Maker: m, BlockSize: 16, Head: 32, Overhead: 48})
	long, empty := NewPrompt(Segment{Key: 1, N: 64}), NewPrompt()
	for i, sent := range []struct {
		adapter string
		prompt  Prompt
		want    int64
	}{
		{"", long, 32}, // the head, which a probe brought
		{"a", long, 0},
		{"a", long, 96}, // of 112 tokens the last block of 16 is computed
		{"b", empty, 0},
		{"b", empty, 32},
		{"c", empty, 0},
		{"b", long, 32},
		{"", long, 96},
	} {
		if got := p.AddFor(sent.adapter, sent.prompt); got != sent.want {
			t.Errorf("prompt %d: got %d hits, want %d", i, got, sent.want)
		}
	}
}
