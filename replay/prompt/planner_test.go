package prompt

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retrace/record"
)

// request makes a request of so many tokens in and out.
func request(row, input, output int64, blocks ...uint64) *record.Request {
	r := record.NewRequest()
	r.Row, r.Arrival = row, 0
	r.InputTokens, r.OutputTokens, r.Blocks = input, output, blocks
	return &r
}

// inSession makes r a turn of a session that holds only what is new.
func inSession(r *record.Request, session string) *record.Request {
	r.Session, r.Increment = session, true
	return r
}

// plan plans or fails the test.
func plan(t testing.TB, p *Planner, r *record.Request) Prompt {
	t.Helper()
	prompt, err := p.Plan(r)
	if err != nil {
		t.Fatal(err)
	}
	return prompt
}

func TestPlan(t *testing.T) {
	key := RequestKey(request(3, 0, 0))
	for name, c := range map[string]struct {
		input  int64
		blocks []uint64
		want   []Segment
	}{
		"whole blocks":           {32, []uint64{5, 6}, []Segment{{Key: 5, N: 16}, {Key: 6, N: 16}}},
		"partial last block":     {20, []uint64{5, 6}, []Segment{{Key: 5, N: 16}, {Key: 6, N: 4}}},
		"input beyond blocks":    {40, []uint64{5, 6}, []Segment{{Key: 5, N: 16}, {Key: 6, N: 16}, {Key: key, N: 8, Kind: Tail}}},
		"blocks beyond input":    {20, []uint64{5, 6, 7, 8}, []Segment{{Key: 5, N: 16}, {Key: 6, N: 4}}},
		"no blocks":              {20, nil, []Segment{{Key: key, N: 20, Kind: Tail}}},
		"empty input":            {0, nil, nil},
		"empty input, blocks":    {0, []uint64{5}, nil},
		"unknown input, blocks":  {record.Unknown, []uint64{5, 6}, []Segment{{Key: 5, N: 16}, {Key: 6, N: 16}}},
		"the same block, twice":  {32, []uint64{5, 5}, []Segment{{Key: 5, N: 16}, {Key: 5, N: 16}}},
		"ids that fill 64 bits":  {17, []uint64{math.MaxUint64, 0}, []Segment{{Key: math.MaxUint64, N: 16}, {Key: 0, N: 1}}},
		"one token of one block": {1, []uint64{9}, []Segment{{Key: 9, N: 1}}},
	} {
		for _, turns := range []string{"", "full", "increment", "mixed"} {
			p := NewPlanner(record.Header{BlockSize: 16, Turns: turns})
			if got := plan(t, p, request(3, c.input, 1, c.blocks...)).Segments(); !slices.Equal(got, c.want) {
				t.Errorf("%s, turns %q: %v, want %v", name, turns, got, c.want)
			}
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		blockSize int
		r         *record.Request
		want      string
	}{
		"no length, no blocks": {16, request(7, record.Unknown, 1), "plan prompt of request 7: input tokens are unknown"},
		"blocks of no size":    {0, request(7, 5, 1, 1, 2), "2 blocks in a trace whose block size is not known"},
		"absurd input":         {16, request(7, math.MaxInt64, 1), "want at most 2147483647"},
	} {
		_, err := NewPlanner(record.Header{BlockSize: c.blockSize}).Plan(c.r)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := NewPlanner(record.Header{}).Plan(request(7, record.Unknown, 1)); !errors.Is(err, ErrNoLength) {
		t.Errorf("error %v is not ErrNoLength", err)
	}
}

// TestIncrement is case T17: 520 new tokens, 132 out, 24 new make 676.
func TestIncrement(t *testing.T) {
	p := NewPlanner(record.Header{BlockSize: 512, Turns: "increment"})
	first := plan(t, p, inSession(request(0, 520, 132, 1, 2), "s"))
	second := plan(t, p, inSession(request(1, 24, 9, 3), "s"))
	third := plan(t, p, inSession(request(2, 7, 1), "s"))
	if first.Tokens() != 520 || second.Tokens() != 676 || third.Tokens() != 676+9+7 {
		t.Errorf("turns of %d, %d, %d tokens, want 520, 676, 692", first.Tokens(), second.Tokens(), third.Tokens())
	}
	want := []Segment{
		{Key: 1, N: 512},
		{Key: 2, N: 8},
		{Key: RequestKey(request(0, 0, 0)), N: 132, Kind: Output},
		{Key: 3, N: 24},
		{Key: RequestKey(request(1, 0, 0)), N: 9, Kind: Output},
		{Key: RequestKey(request(2, 0, 0)), N: 7, Kind: Tail},
	}
	if got := third.Segments(); !slices.Equal(got, want) {
		t.Errorf("third turn %v, want %v", got, want)
	}
	m := newMaker(t, Config{Namespace: "t17", BlockSize: 512})
	long := m.AppendTokenIDs(nil, third)
	for _, p := range []Prompt{first, second} {
		if ids := m.AppendTokenIDs(nil, p); !slices.Equal(ids, long[:len(ids)]) {
			t.Errorf("turn of %d tokens is not the start of the third", p.Tokens())
		}
	}
}

// TestFullTurns is the other dialect of T17: the second turn sends its 676.
func TestFullTurns(t *testing.T) {
	p := NewPlanner(record.Header{BlockSize: 512, Turns: "full"})
	for row, input := range []int64{520, 676} {
		r := request(int64(row), input, 132, 1, 2)
		r.Session = "s"
		if got := plan(t, p, r).Tokens(); got != int(input) {
			t.Errorf("turn %d has %d tokens, want %d", row+1, got, input)
		}
	}
}

// TestParentNamesTheTurn: two turns that follow the same one are branches.
func TestParentNamesTheTurn(t *testing.T) {
	p := NewPlanner(record.Header{BlockSize: 16, Turns: "increment"})
	turn := func(id, parent string, input int64) Prompt {
		r := inSession(request(0, input, 10), "s")
		r.ID, r.Parent = id, parent
		return plan(t, p, r)
	}
	turn("a", "", 5)
	if b, c, d := turn("b", "a", 7), turn("c", "a", 8), turn("d", "b", 1); b.Tokens() != 22 || c.Tokens() != 23 || d.Tokens() != 33 {
		t.Errorf("branches of %d, %d and %d tokens, want 22, 23 and 33", b.Tokens(), c.Tokens(), d.Tokens())
	}
}

// TestMixedTurns: a full turn within a session starts its prompt anew.
func TestMixedTurns(t *testing.T) {
	p := NewPlanner(record.Header{BlockSize: 16, Turns: "mixed"})
	plan(t, p, inSession(request(0, 16, 4, 1), "s"))
	full := inSession(request(1, 16, 4, 2), "s")
	full.Increment = false
	if got := plan(t, p, full).Tokens(); got != 16 {
		t.Errorf("full turn has %d tokens, want 16", got)
	}
	if got := plan(t, p, inSession(request(2, 3, 4), "s")).Tokens(); got != 23 {
		t.Errorf("increment after it has %d tokens, want 16 + 4 + 3", got)
	}
}

func TestOrphans(t *testing.T) {
	lone := func(change func(*record.Request)) int64 {
		p := NewPlanner(record.Header{BlockSize: 16, Turns: "increment"})
		r := inSession(request(0, 5, 1), "s")
		change(r)
		if got := plan(t, p, r).Tokens(); got != 5 {
			t.Errorf("lone turn has %d tokens, want its own 5", got)
		}
		return p.Orphans()
	}
	for name, c := range map[string]struct {
		change func(*record.Request)
		want   int64
	}{
		"first turn":     {func(*record.Request) {}, 0},
		"second turn":    {func(r *record.Request) { r.Turn = 2 }, 1},
		"unknown parent": {func(r *record.Request) { r.Parent = "x" }, 1},
		"delay alone":    {func(r *record.Request) { r.Arrival = record.NoTime }, 1},
	} {
		if got := lone(c.change); got != c.want {
			t.Errorf("%s: %d orphans, want %d", name, got, c.want)
		}
	}
}

// TestUnknownOutputIsNoText: an answer of unknown length adds nothing to the next turn.
func TestUnknownOutputIsNoText(t *testing.T) {
	p := NewPlanner(record.Header{Turns: "increment"})
	plan(t, p, inSession(request(0, 5, record.Unknown), "s"))
	if got := plan(t, p, inSession(request(1, 5, 1), "s")).Tokens(); got != 10 {
		t.Errorf("second turn has %d tokens, want 10", got)
	}
}

// TestHistoryAgainstLists compares the planner with the rule itself, carried
// out on plain lists.
func TestHistoryAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPlanner(record.Header{BlockSize: 8, Turns: "increment"})
		lists := make(map[string][]Segment)
		for row := range rapid.IntRange(1, 30).Draw(t, "turns") {
			session := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "session")
			blocks := rapid.SliceOfN(rapid.Uint64(), 0, 4).Draw(t, "blocks")
			r := inSession(request(int64(row), rapid.Int64Range(0, 40).Draw(t, "input"), rapid.Int64Range(0, 9).Draw(t, "output"), blocks...), session)
			want := lists[session]
			rest := r.InputTokens
			for _, id := range blocks {
				n := min(rest, 8)
				want = append(want, Segment{Key: id, N: uint32(n)})
				rest -= n
			}
			want = append(want, Segment{Key: RequestKey(r), N: uint32(rest), Kind: Tail})
			got, err := p.Plan(r)
			if err != nil || !slices.Equal(got.Segments(), NewPrompt(want...).Segments()) {
				t.Fatalf("row %d: %v, %v, want %v", row, got.Segments(), err, want)
			}
			lists[session] = append(want, Segment{Key: RequestKey(r), N: uint32(r.OutputTokens), Kind: Output})
		}
	})
}

func TestRequestKey(t *testing.T) {
	named := request(5, 1, 1)
	named.ID = "5"
	long := request(5, 1, 1)
	long.ID = strings.Repeat("x", 200)
	keys := []uint64{RequestKey(request(5, 1, 1)), RequestKey(request(6, 1, 1)), RequestKey(named), RequestKey(long)}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 4 {
		t.Errorf("row 5, row 6, ID \"5\" and a long ID share a key: %d", keys)
	}
}

// TestHistoryIsSmall holds a million turns to the memory that the Planner's
// documentation claims.
func TestHistoryIsSmall(t *testing.T) {
	p := NewPlanner(record.Header{BlockSize: 512, Turns: "increment"})
	const turns = 20000
	for i := range int64(turns) {
		first := uint64(i) * 8
		r := inSession(request(i, 4096, 100, first, first+1, first+2, first+3, first+4, first+5, first+6, first+7), fmt.Sprint("s", i/4))
		plan(t, p, r)
	}
	bytes := 0
	for _, page := range p.history.pages {
		bytes += len(page)
	}
	if each := bytes / turns; each > 30 {
		t.Errorf("%d bytes a turn of eight blocks, want at most 30", each)
	}
	if n := len(p.history.last); n != turns/4 {
		t.Errorf("%d names, want one a session, %d", n, turns/4)
	}
}

func BenchmarkPlan(b *testing.B) {
	p := NewPlanner(record.Header{BlockSize: 512})
	r := request(0, 8192, 100, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	b.ReportAllocs()
	for b.Loop() {
		plan(b, p, r)
	}
}
