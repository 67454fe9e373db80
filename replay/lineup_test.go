package replay

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"retrace/record"
	"retrace/replay/arrival"
)

var prompt1 = answers(scripted(step{0, word + done}))

// TestLawsRun: under every law each request leaves at the law's time, to the
// nanosecond, and the speed divides it. The laws' own times are arrival's tests.
func TestLawsRun(t *testing.T) {
	for _, law := range []arrival.Law{
		{Kind: arrival.Constant, Rate: 100}, {Kind: arrival.Poisson, Rate: 200}, {Kind: arrival.Gamma, Rate: 50, Burstiness: 0.2},
		{Kind: arrival.Poisson, RampUp: arrival.Linear, Start: 10, End: 1000},
		{Kind: arrival.Constant, RampUp: arrival.Exponential, Start: 10, End: 1000}, {Kind: arrival.Burst},
	} {
		t.Run(law.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 200
				out, results := inBubble(t, prompt1, every(3*time.Hour, n), func(c *Config) {
					c.Placing, c.Seed, c.Speed = Placing{Law: law, Count: n}, 9, 2
				})
				want := slices.Collect(law.Times(n, 9))
				for i, r := range results {
					if at := want[i] / 2; r.Scheduled != at || r.Sent != at {
						t.Fatalf("request %d: scheduled %v, sent %v, want %v", i, r.Scheduled, r.Sent, at)
					}
				}
				if out.Planned != n || out.Completed != n {
					t.Errorf("%+v", out)
				}
			})
		})
	}
}

// TestLawInSessions: by hand. At 1/s the law gives 1 s, 2 s, …; an answer takes
// 100 ms.
func TestLawInSessions(t *testing.T) {
	timed := []record.Request{ // a: 0 and 5 s, b: 1 s and 1.05 s, alone: 2 s
		turnAt(0, "a", 1, 0, -1), turnAt(1, "b", 1, 1000*ms, -1), turnAt(2, "b", 2, 1050*ms, -1),
		turnAt(3, "", 0, 2000*ms, -1), turnAt(4, "a", 2, 5000*ms, -1),
	}
	delays := []record.Request{
		turnAt(0, "a", 1, 0, -1), turnAt(1, "a", 2, -1, 300*ms), turnAt(2, "b", 1, 7000*ms, -1), turnAt(3, "b", 2, -1, 0),
	}
	for _, c := range []struct {
		name  string
		reqs  []record.Request
		mode  SessionMode
		count int64
		moves bool
		want  string
	}{
		{"open", timed, Open, 5, false, "[1s 2s 3s 4s 5s]"},
		// a moves by 1 s, b by 1 s, its second turn waits for the first's end
		{"closed", timed, Closed, 3, true, "[1s 2s 2.1s 3s 6s]"},
		{"closed, delays", delays, Closed, 2, false, "[1s 1.4s 2s 2.1s]"},
		{"open, delays", delays, Open, 2, false, "[1s 1.4s 2s 2.1s]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, results := inBubble(t, answers(scripted(step{100 * ms, word + done})), c.reqs, func(cfg *Config) {
					cfg.Sessions, cfg.Header.DelayMeaning = c.mode, "after the answer"
					cfg.Placing = Placing{Law: arrival.Law{Kind: arrival.Constant, Rate: 1}, Count: c.count, Moves: c.moves}
				})
				if got := fmt.Sprint(scheduled(results)); got != c.want {
					t.Errorf("scheduled %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestSlowLawReordersSessions: the second turn of the first session is due long
// before the later sessions begin, and goes then, whatever lies between them in
// the trace, also on one processor, where the renderer waits for room already
// when the turn comes up.
func TestSlowLawReordersSessions(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		var reqs []record.Request
		for i := range int64(30) {
			reqs = append(reqs, turnAt(i, fmt.Sprint("s", i), 1, time.Duration(i)*ms, -1))
			reqs[i].InputTokens = 400_000 // more than the plans' budget holds
			reqs[i].Blocks = make([]uint64, 400_000/16)
			for k := range reqs[i].Blocks {
				reqs[i].Blocks[k] = uint64(i)<<32 | uint64(k*2)
			}
		}
		reqs = append(reqs, turnAt(30, "s0", 2, 500*ms, -1))
		_, results := inBubble(t, prompt1, reqs, func(c *Config) {
			c.Sessions, c.Header.BlockSize = Closed, 16
			c.Placing = Placing{Law: arrival.Law{Kind: arrival.Constant, Rate: 0.1}, Count: 30, Moves: true}
		})
		if r := results[30]; r.Sent != 10500*ms || results[29].Sent != 300*time.Second {
			t.Errorf("second turn sent at %v, last session at %v", r.Sent, results[29].Sent)
		}
	})
}

// TestCountTooSmall: a count that is not the trace's is an error of the run.
func TestCountTooSmall(t *testing.T) {
	for _, mode := range []SessionMode{Open, Closed} {
		cfg := Config{Sessions: mode, Placing: Placing{Law: arrival.Law{Kind: arrival.Burst}, Count: 1}}
		n := 0
		for _, err := range cfg.LineUp(seq(every(ms, 3))) {
			if n++; n == 2 && err != errCount {
				t.Errorf("%s: %v", mode, err)
			}
		}
		if n != 2 {
			t.Errorf("%s: %d requests", mode, n)
		}
	}
}

// genTrace draws a trace with sessions, delays, parents and lone requests.
func genTrace(t *rapid.T) []record.Request {
	var list []record.Request
	turns := map[string]int{}
	at := time.Duration(0)
	for i := range rapid.IntRange(1, 60).Draw(t, "n") {
		at += time.Duration(rapid.IntRange(0, 2000).Draw(t, "gap")) * ms
		session := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(t, "session")
		r := turnAt(int64(i), session, 0, at, -1)
		if session != "" {
			turns[session]++
			r.Turn = turns[session]
			if r.Turn > 1 && rapid.Bool().Draw(t, "delay") {
				r.Arrival, r.Delay = record.NoTime, 5*ms
			}
		}
		list = append(list, r)
	}
	return list
}

func genPlacing(t *rapid.T, c *Config, reqs []record.Request) {
	c.Sessions = rapid.SampledFrom([]SessionMode{Open, Closed}).Draw(t, "sessions")
	c.Seed = rapid.Int64().Draw(t, "seed")
	c.Placing.Law = rapid.SampledFrom([]arrival.Law{
		{}, {Kind: arrival.Constant, Rate: 10}, {Kind: arrival.Poisson, Rate: 1}, {Kind: arrival.Burst},
		{Kind: arrival.Gamma, RampUp: arrival.Linear, Start: 1, End: 9},
	}).Draw(t, "law")
	heads := NewHeads()
	for i := range reqs {
		head := heads.Add(&reqs[i])
		switch {
		case c.Sessions == Closed && head, c.Sessions == Open && reqs[i].Arrival != record.NoTime:
			c.Placing.Count++
		case c.Sessions == Closed && reqs[i].Arrival != record.NoTime:
			c.Placing.Moves = true
		}
	}
}

// TestShardsAreTheWhole: the shards of a run have together its requests, with
// its times and its places in the round of the servers, each once; and within
// one, times do not go back.
func TestShardsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs := genTrace(t)
		var cfg Config
		genPlacing(t, &cfg, reqs)
		line := func(c Config) map[string]string {
			m := map[string]string{}
			last := record.NoTime
			for p, err := range c.lineUp(seq(reqs)) {
				if err != nil {
					t.Fatal(err)
				}
				m[p.Key()] = fmt.Sprint(p.index, p.Arrival, p.last)
				if p.Arrival != record.NoTime {
					if p.Arrival < last {
						t.Fatalf("request %s at %v is behind one at %v", p.Key(), p.Arrival, last)
					}
					last = p.Arrival
				}
			}
			return m
		}
		whole := line(cfg)
		if len(whole) != len(reqs) {
			t.Fatalf("%d of %d requests", len(whole), len(reqs))
		}
		cfg.Shards = rapid.IntRange(2, 4).Draw(t, "shards")
		union, total := map[string]string{}, 0
		for cfg.Shard = range cfg.Shards {
			part := line(cfg)
			total += len(part)
			maps.Copy(union, part)
		}
		if !maps.Equal(union, whole) || total != len(whole) {
			t.Fatalf("%d shards have %d requests, the whole %d:\n%v\n%v", cfg.Shards, total, len(whole), union, whole)
		}
	})
}

// TestShardsRunAsTheWhole: the same of runs, sent to two servers in turns (R24).
func TestShardsRunAsTheWhole(t *testing.T) {
	reqs := append(every(30*ms, 20), turnAt(20, "s", 1, 700*ms, -1), turnAt(21, "s", 2, 710*ms, -1), turnAt(22, "", 0, 720*ms, -1))
	sent := func(shard, shards, slots int) (list []string) {
		synctest.Test(t, func(t *testing.T) {
			_, results := inBubble(t, answers(scripted(step{20 * ms, word + done})), reqs, func(c *Config) {
				c.URLs = []string{"http://127.0.0.1", "http://127.0.0.2"}
				c.Shard, c.Shards, c.MaxConcurrency = shard, shards, slots
				c.Placing = Placing{Law: arrival.Law{Kind: arrival.Poisson, Rate: 5}, Count: int64(len(reqs))}
			})
			for _, r := range results {
				list = append(list, fmt.Sprint(r.ID, " ", r.Scheduled, " to ", r.Replica))
			}
		})
		return list
	}
	whole := sent(0, 1, 0)
	parts := slices.Concat(sent(0, 3, 0), sent(1, 3, 0), sent(2, 3, 0))
	narrow := sent(0, 1, 1)
	for _, list := range [][]string{whole, parts, narrow} {
		slices.Sort(list)
	}
	if !slices.Equal(whole, parts) || !slices.Equal(whole, narrow) {
		t.Errorf("whole\n%s\nshards\n%s\none slot\n%s", strings.Join(whole, "\n"), strings.Join(parts, "\n"), strings.Join(narrow, "\n"))
	}
}
