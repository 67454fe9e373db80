package analysis

import (
	"testing"
	"time"

	"retrace/record"
)

func TestParseSLO(t *testing.T) {
	for _, c := range []struct {
		text string
		want SLO
		err  string
	}{
		{"ttft=500ms", SLO{TTFT: 500 * ms}, ""},
		{"ttft=500ms,tpot=50ms,e2e=10s", SLO{TTFT: 500 * ms, TPOT: 50 * ms, E2E: 10 * time.Second}, ""},
		{" e2e = 1m , tpot=1.5ms", SLO{TPOT: 1500 * time.Microsecond, E2E: time.Minute}, ""},
		{"", SLO{}, `parse SLO "": found "", expected NAME=DURATION such as ttft=500ms`},
		{"ttft", SLO{}, `parse SLO "ttft": found "ttft", expected NAME=DURATION such as ttft=500ms`},
		{"itl=5ms", SLO{}, `parse SLO "itl=5ms": found metric "itl", expected ttft, tpot or e2e`},
		{"ttft=500", SLO{}, `parse SLO "ttft=500": ttft is "500", expected a positive duration such as 500ms`},
		{"ttft=0s", SLO{}, `parse SLO "ttft=0s": ttft is "0s", expected a positive duration such as 500ms`},
		{"ttft=-1s", SLO{}, `parse SLO "ttft=-1s": ttft is "-1s", expected a positive duration such as 500ms`},
		{"ttft=1s,ttft=2s", SLO{}, `parse SLO "ttft=1s,ttft=2s": ttft is given twice`},
		{"ttft=1s,", SLO{}, `parse SLO "ttft=1s,": found "", expected NAME=DURATION such as ttft=500ms`},
	} {
		got, err := ParseSLO(c.text)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%q: got error %v, want %s", c.text, err, c.err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%q: got %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
}

// FuzzParseSLO states the law that what is accepted can be written and read
// again.
func FuzzParseSLO(f *testing.F) {
	for _, seed := range []string{"ttft=500ms,tpot=50ms,e2e=10s", "e2e=1h", "ttft=", "=,=", "tpot=1ns,tpot=1ns"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slo, err := ParseSLO(text)
		if err != nil {
			return
		}
		again, err := ParseSLO(slo.String())
		if err != nil || again != slo {
			t.Errorf("%q: %+v is written as %q and read as %+v, %v", text, slo, slo.String(), again, err)
		}
	})
}

func TestSLOMet(t *testing.T) {
	untimed := record.NewResult()
	untimed.State = record.Completed
	for _, c := range []struct {
		name string
		res  record.Result
		slo  SLO
		want int64
	}{
		{"at the limit", completed(0, 100*ms, 10*ms, 11), SLO{TTFT: 100 * ms, TPOT: 10 * ms, E2E: 200 * ms}, 1},
		{"first output too late", completed(0, 101*ms, 10*ms, 11), SLO{TTFT: 100 * ms}, 0},
		{"tokens too slow", completed(0, ms, 11*ms, 11), SLO{TPOT: 10 * ms}, 0},
		{"end too late", completed(0, 100*ms, 10*ms, 12), SLO{E2E: 200 * ms}, 0},
		{"one token has no TPOT to be too long", completed(0, ms, 0, 1), SLO{TPOT: 10 * ms}, 1},
		{"unknown first output", untimed, SLO{TTFT: time.Hour}, 0},
		{"unknown end", untimed, SLO{E2E: time.Hour}, 0},
		{"failed", failed(0, record.ClassHTTP429), SLO{E2E: time.Hour}, 0},
	} {
		if got := analyse(RunOptions{SLO: &c.slo}, c.res).Goodput.Good; got != c.want {
			t.Errorf("%s: got %d good, want %d", c.name, got, c.want)
		}
	}
}
