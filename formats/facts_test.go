package formats

import (
	"testing"
	"time"
)

// times makes a finder of times in milliseconds.
func quantumOf(times ...int64) time.Duration {
	var q quantumFinder
	for _, t := range times {
		q.add(time.Duration(t) * time.Millisecond)
	}
	return q.quantum()
}

func TestQuantum(t *testing.T) {
	// Rows at every 3 s, give or take 3 ms, three at a time, as the published
	// conversation trace has them.
	var coarse, fine, once []int64
	for i := range int64(30) {
		at := i*3000 + i%7 - 3 + 3
		coarse = append(coarse, at, at, at)
		fine = append(fine, i*i*37, i*i*37, i*i*37) // crowded, but no common step
		once = append(once, i*3000)                 // steps, but no crowd
	}
	for name, c := range map[string]struct {
		times []int64
		want  time.Duration
	}{
		"3 s steps":      {coarse, 3 * time.Second},
		"no common step": {fine, 0},
		"one row a step": {once, 0},
		"T10: one time":  {[]int64{3000, 3000, 3000, 3000}, 0},
		"none":           {nil, 0},
	} {
		if got := quantumOf(c.times...); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestRestartFinder(t *testing.T) {
	for name, c := range map[string]struct {
		seconds []int64
		rows    []int64
	}{
		"in order":                  {[]int64{0, 1, 2, 3}, nil},
		"T09":                       {[]int64{100, 104, 0, 3}, []int64{2}},
		"two restarts":              {[]int64{0, 500, 900, 1, 2, 800, 5, 6, 7}, []int64{3, 6}},
		"small step back":           {[]int64{100, 104, 60, 105}, nil},
		"one late row":              {[]int64{0, 500, 900, 1, 901, 902}, nil},
		"one row before":            {[]int64{900, 0, 1, 2}, nil},
		"reversed":                  {[]int64{900, 700, 500, 300, 100, 0}, nil},
		"back into the middle only": {[]int64{0, 500, 900, 400, 450, 500}, nil},
	} {
		var f restartFinder
		f.begin("x")
		for i, s := range c.seconds {
			f.add(int64(i), time.Duration(s)*time.Second, false)
		}
		f.end()
		var got []int64
		for _, r := range f.found {
			got = append(got, r.row)
		}
		if len(got) != len(c.rows) || len(got) > 0 && got[0] != c.rows[0] || len(got) > 1 && got[1] != c.rows[1] {
			t.Errorf("%s: restarts at %v, want %v", name, got, c.rows)
		}
	}
}
