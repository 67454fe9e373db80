package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"retrace/analysis"
	"retrace/formats"
	"retrace/hashing/prefixcache"
)

// options are the flags of an analysis, as given and as understood.
type options struct {
	json        bool
	slo         string
	cacheBlocks string
	policies    string
	warmup      float64
	cache       cacheFlags

	flags    *pflag.FlagSet
	reading  *formats.Flags
	source   formats.Options
	target   *analysis.SLO
	capacity []int
	policy   []prefixcache.Policy
}

// The flags that make sense for one kind of input alone.
var (
	forRecordings = []string{"slo"}
	forTraces     = append([]string{"cache-blocks", "policies", "warmup"}, cacheFlagNames...)
)

// newOptions defines the flags.
func newOptions() *options {
	o := &options{flags: pflag.NewFlagSet("trace-analyze", pflag.ContinueOnError)}
	fs := o.flags
	fs.SortFlags = false
	fs.BoolVar(&o.json, "json", false, "print the whole analysis as one JSON object (docs/analysis.md has its keys)")
	fs.StringVar(&o.slo, "slo", "", "`LIMITS`: those of goodput, such as ttft=500ms,tpot=50ms,e2e=10s; for recordings")
	fs.StringVar(&o.cacheBlocks, "cache-blocks", "", "`N,...`: cache sizes in blocks; default: doubling, up to all blocks; for traces")
	fs.StringVar(&o.policies, "policies", string(prefixcache.PolicyLRU), "`NAME,...`: cache policies, of lru, fifo, optimal and vllm; for traces")
	fs.Float64Var(&o.warmup, "warmup", 0, "`SHARE`: the part of the requests, 0 to 1, that fills the cache and is not counted; for traces")
	o.cache.bind(fs)
	o.reading = formats.BindFlags(fs)
	return o
}

// validate checks the flags' values and names the one that is wrong.
func (o *options) validate() error {
	if o.flags.NArg() == 0 {
		return errors.New("no FILE given")
	}
	var err error
	if o.flags.Changed("slo") {
		slo, err := analysis.ParseSLO(o.slo)
		if err != nil {
			return fmt.Errorf("--slo: %w", err)
		}
		o.target = &slo
	}
	if o.flags.Changed("cache-blocks") {
		if o.capacity, err = prefixcache.ParseCapacities(o.cacheBlocks); err != nil {
			return fmt.Errorf("--cache-blocks: %w", err)
		}
	}
	if o.policy, err = prefixcache.ParsePolicies(o.policies); err != nil {
		return fmt.Errorf("--policies: %w", err)
	}
	if !(o.warmup >= 0 && o.warmup <= 1) {
		return fmt.Errorf("--warmup %g: expected a share from 0 to 1", o.warmup)
	}
	if err := o.cache.validate(o.flags.Changed); err != nil {
		return err
	}
	o.source, err = o.reading.Options()
	return err
}

// fits refuses flags that say nothing about the kind of input there is.
func (o *options) fits(kind string, foreign []string) error {
	for _, name := range foreign {
		if o.flags.Changed(name) {
			return fmt.Errorf("--%s does not fit: %s is a %s", name, o.flags.Arg(0), kind)
		}
	}
	return nil
}

// readingFlags are the names of the flags that govern foreign rows.
func (o *options) readingFlags() []string {
	var names []string
	own := map[string]bool{"json": true, "help": true, "version": true}
	for _, name := range slices.Concat(forRecordings, forTraces) {
		own[name] = true
	}
	o.flags.VisitAll(func(f *pflag.Flag) {
		if !own[f.Name] {
			names = append(names, f.Name)
		}
	})
	return names
}
