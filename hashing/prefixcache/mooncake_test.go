package prefixcache

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"testing"
)

const mooncakePath = "../../../shared/data/mooncake/conversation_trace.jsonl"

// readMooncake reads the first rows of the real Mooncake conversation trace,
// all of them for limit 0, and skips the test where it is not there.
func readMooncake(tb testing.TB, limit int) *Sequence {
	tb.Helper()
	f, err := os.Open(mooncakePath)
	if err != nil {
		tb.Skipf("the real Mooncake trace is not here: %v", err)
	}
	defer f.Close()
	s, err := NewSequence(512)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && (limit == 0 || s.Requests() < limit) {
		var row struct {
			Input  int64    `json:"input_length"`
			Output int64    `json:"output_length"`
			IDs    []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			tb.Fatal(err)
		}
		if err := s.Add(row.IDs, row.Input, row.Output); err != nil {
			tb.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	s.Freeze()
	return s
}

func TestMooncakeIdeal(t *testing.T) {
	// The values are public knowledge about this file: an endless cache, in
	// file order. Counted with 20 lines of Python as well.
	for _, want := range []struct {
		rows                         int
		byBlock, byToken, byFull     float64
		requests, blocks, unique, in int64
	}{
		{2000, 0.289063, 0.294112, 0.299722, 2000, 54559, 0, 27441774},
		{0, 0.366412, 0.373624, 0.381900, 12031, 288500, 182790, 144793823},
	} {
		s := readMooncake(t, want.rows)
		got := s.Ideal(0)
		for _, c := range []struct {
			name      string
			hit, all  int64
			wantShare float64
		}{
			{"blocks", got.HitBlocks, got.Blocks, want.byBlock},
			{"tokens", got.HitTokens, got.Tokens, want.byToken},
			{"full blocks", got.FullHits, got.FullBlocks, want.byFull},
		} {
			if share := float64(c.hit) / float64(c.all); math.Abs(share-c.wantShare) > 5e-7 {
				t.Errorf("%d rows, hit rate by %s: got %.6f, want %.6f", want.rows, c.name, share, c.wantShare)
			}
		}
		if n := int64(s.Requests()); n != want.requests {
			t.Errorf("requests: got %d, want %d", n, want.requests)
		}
		if got.Blocks != want.blocks || got.Tokens != want.in {
			t.Errorf("got %d blocks of %d tokens, want %d of %d", got.Blocks, got.Tokens, want.blocks, want.in)
		}
		if n := int64(s.Unique()); want.unique != 0 && n != want.unique {
			t.Errorf("unique blocks: got %d, want %d", n, want.unique)
		}
	}
}

// TestMooncakeServer: a real vLLM server that got the first 200 requests, inputs
// cut to 4,096 tokens, counted 671,702 prompt tokens, of which 122,288 were
// cached at a block size of 16 and 122,208 at 32.
func TestMooncakeServer(t *testing.T) {
	whole := readMooncake(t, 200)
	for size, want := range map[int64]int64{16: 122_288, 32: 122_208} {
		s, _ := NewSequence(int(size))
		whole.each(0, func(r *request) {
			input := min(r.input, 4096)
			var ids []uint64
			for at := int64(0); at < input; at += size {
				ids = append(ids, uint64(r.blocks[at/512])*512+uint64(at%512))
			}
			if err := s.Add(ids, input, 16); err != nil {
				t.Fatal(err)
			}
		})
		if got := s.Ideal(0); got.ServerTokens != want || got.Tokens != 671_702 {
			t.Errorf("blocks of %d: got %d of %d tokens, want %d of 671702", size, got.ServerTokens, got.Tokens, want)
		}
		if got := s.VLLM(1<<20, 0); got != want {
			t.Errorf("blocks of %d, vllm: got %d tokens, want %d", size, got, want)
		}
	}
}

func TestMooncakeCurve(t *testing.T) {
	// From kvcache-simulator 0.1.3 (PyPI), its C++ core, warm-up 0.5: of
	// 67,915,607 tokens. The last capacity holds every reused block.
	s := readMooncake(t, 0)
	warmup := s.WarmupRequests(0.5)
	if n := s.Tokens(warmup); n != 67915607 {
		t.Errorf("tokens after the warm-up: got %d, want 67915607", n)
	}
	lru := s.LRU(warmup)
	for _, want := range []struct {
		capacity           int
		fifo, lru, optimal int64
	}{
		{500, 2958408, 3085579, 9512173},
		{1000, 3105848, 3173822, 13381287},
		{2000, 3637096, 3814129, 18054257},
		{5637, 8301260, 8928755, 25320951},
		{11275, 13281665, 15849049, 27038068},
		{22550, 18868426, 21501492, 27038068},
		{45000, 22816303, 25426292, 27038068},
		{90000, 25365128, 26550644, 27038068},
		{182790, 27038068, 27038068, 27038068},
	} {
		if got := s.FIFO(want.capacity, warmup); got != want.fifo {
			t.Errorf("FIFO, %d blocks: got %d, want %d", want.capacity, got, want.fifo)
		}
		if got := lru.HitTokens(want.capacity); got != want.lru {
			t.Errorf("LRU, %d blocks: got %d, want %d", want.capacity, got, want.lru)
		}
		if got := s.Optimal(want.capacity, warmup); got != want.optimal {
			t.Errorf("optimal, %d blocks: got %d, want %d", want.capacity, got, want.optimal)
		}
	}
	if got := s.Ideal(warmup).HitTokens; got != 27038068 {
		t.Errorf("ideal: got %d, want 27038068", got)
	}
}

func BenchmarkMooncake(b *testing.B) {
	s := readMooncake(b, 0)
	warmup := s.WarmupRequests(0.5)
	b.Run("Number", func(b *testing.B) {
		ids := make([][]uint64, 0, s.Requests())
		s.each(0, func(r *request) {
			list := make([]uint64, len(r.blocks))
			for i, n := range r.blocks {
				list[i] = uint64(n)
			}
			ids = append(ids, list)
		})
		for b.Loop() {
			t, _ := NewSequence(512)
			for _, list := range ids {
				if err := t.Add(list, 1, 1); err != nil {
					b.Fatal(err)
				}
			}
			t.Freeze()
		}
	})
	b.Run("LRUAll", func(b *testing.B) {
		for b.Loop() {
			s.LRU(warmup)
		}
	})
	b.Run("VLLM", func(b *testing.B) {
		for b.Loop() {
			s.VLLM(5637, warmup)
		}
	})
	b.Run("FIFO", func(b *testing.B) {
		for b.Loop() {
			s.FIFO(5637, warmup)
		}
	})
	b.Run("Optimal", func(b *testing.B) {
		s.nextUses()
		for b.Loop() {
			s.Optimal(5637, warmup)
		}
	})
	b.Run("Ideal", func(b *testing.B) {
		for b.Loop() {
			s.Ideal(warmup)
		}
	})
}
