package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"retrace/record"
	"retrace/replay"
)

// fastestScrapes bounds how often a server is asked: a page of metrics costs it
// some milliseconds.
const fastestScrapes = 100 * time.Millisecond

// metricsFlags are those of the servers' metrics.
type metricsFlags struct{ every time.Duration }

func (f *metricsFlags) bind(set *pflag.FlagSet) {
	set.DurationVar(&f.every, "metrics-interval", time.Second, "`DURATION`: read the server's /metrics before the run, so often while it goes on, and after it; 0: never")
}

func (f *metricsFlags) validate() error {
	if f.every != 0 && f.every < fastestScrapes {
		return errors.New("--metrics-interval: want at least " + fastestScrapes.String() + ", or 0 for never")
	}
	return nil
}

func (f *metricsFlags) apply(c *replay.Config) {
	c.MetricsInterval = f.every
	if f.every == 0 {
		c.MetricsInterval = -1 // 0 would be the default
	}
}

// series takes one series of the server's metrics, while results are taken.
func (r *runner) series(s *record.Series) error {
	r.taking.Lock()
	r.summary.AddSeries(r.cfg.Shard, s)
	r.taking.Unlock()
	if r.file == nil {
		return nil
	}
	return r.file.WriteSeries(s)
}
