package record

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// sorted runs n requests with few different keys through a Sorter and checks
// order, stability and completeness.
func testSorter(t *testing.T, n int, opts SorterOptions) {
	t.Helper()
	opts.TempDir = t.TempDir()
	s := NewSorter(opts)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	keys := make([]int64, n)
	r := NewRequest()
	for i := range keys {
		keys[i] = rng.Int64N(50) - 25
		r.Row, r.InputTokens, r.Blocks = int64(i), keys[i], append(r.Blocks[:0], uint64(i))
		if err := s.Add(&r, keys[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := make([]int64, n) // rows by key, by the library's stable sort
	for i := range want {
		want[i] = int64(i)
	}
	slices.SortStableFunc(want, func(a, b int64) int { return int(keys[a] - keys[b]) })
	for range 2 {
		i := 0
		for q, err := range s.Sorted() {
			if err != nil {
				t.Fatal(err)
			}
			if q.Row != want[i] || q.InputTokens != keys[q.Row] || q.Blocks[0] != uint64(q.Row) {
				t.Fatalf("at %d is row %d, want %d", i, q.Row, want[i])
			}
			i++
		}
		if i != n {
			t.Fatalf("%d requests, want %d", i, n)
		}
	}
	for range s.Sorted() {
		break // and nothing leaks
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(opts.TempDir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := s.Add(&r, 0); err == nil {
		t.Error("added after Close")
	}
}

func TestSorter(t *testing.T) {
	t.Run("nothing", func(t *testing.T) { testSorter(t, 0, SorterOptions{}) })
	t.Run("in memory", func(t *testing.T) { testSorter(t, 1000, SorterOptions{}) })
	t.Run("two runs", func(t *testing.T) { testSorter(t, 1001, SorterOptions{MaxRecords: 1000}) })
	t.Run("many chunks a run", func(t *testing.T) { testSorter(t, 10000, SorterOptions{MaxRecords: 3000}) })
	t.Run("several levels", func(t *testing.T) { testSorter(t, 5000, SorterOptions{MaxRecords: 50, FanIn: 3}) })
	t.Run("by bytes", func(t *testing.T) { testSorter(t, 5000, SorterOptions{MaxBytes: 100 << 10}) })
}

// Sorted input costs no sort and keeps its order.
func TestSorterOfSortedInput(t *testing.T) {
	s := NewSorter(SorterOptions{TempDir: t.TempDir(), MaxRecords: 100})
	defer s.Close()
	for i := range 1000 {
		r := NewRequest()
		r.Row = int64(i)
		if err := s.Add(&r, int64(i/3)); err != nil {
			t.Fatal(err)
		}
	}
	next := int64(0)
	for r, err := range s.Sorted() {
		if err != nil || r.Row != next {
			t.Fatal(err, r.Row, next)
		}
		next++
	}
}

// A run that was damaged on disk is an error, not a shorter result.
func TestSorterDamagedRun(t *testing.T) {
	s := NewSorter(SorterOptions{TempDir: t.TempDir(), MaxRecords: 100})
	defer s.Close()
	for i := range 1000 {
		r := NewRequest()
		if err := s.Add(&r, int64(-i)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(s.runs[3])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.runs[3], info.Size()-60); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s.Sorted()); err == nil {
		t.Error("no error")
	}
}

func TestSorterNowhereToWrite(t *testing.T) {
	s := NewSorter(SorterOptions{TempDir: "/no/such/directory", MaxRecords: 1})
	defer s.Close()
	r := NewRequest()
	if err := s.Add(&r, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(&r, 0); err == nil {
		t.Error("no error")
	}
}

// A session's turns stay together; the shards are those of XXH64, worked out
// with the zstd command, whose checksum is XXH64's low half:
// printf a | zstd --check | tail -c4 | xxd -p gives 5b6e8ca9, so 0xa98c6e5b % 4.
func TestShardOf(t *testing.T) {
	r := NewRequest()
	r.Session = "a"
	one := ShardOf(&r, 4)
	r.Turn, r.Row, r.ID = 7, 99, "x"
	if got := ShardOf(&r, 4); got != one || got != 3 {
		t.Errorf("shard %d, want %d", got, 3)
	}
	alone := NewRequest()
	alone.Row = 12
	if got := ShardOf(&alone, 4); got != 2 {
		t.Errorf("shard %d of row:12, want %d", got, 2)
	}
	if ShardOf(&alone, 1) != 0 || ShardOf(&alone, 0) != 0 {
		t.Error("one shard is shard 0")
	}
}
