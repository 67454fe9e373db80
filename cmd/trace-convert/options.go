package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/pflag"

	"retrace/formats"
)

// options are the flags of trace-convert.
type options struct {
	output string
	to     string
	strict bool
	list   bool
	quiet  bool

	read   *formats.Flags
	choose *formats.SelectionFlags
}

const usage = `trace-convert turns a request trace into Retrace's canonical form, or a
canonical one into the form of another tool.

    trace-convert [flags] INPUT... -o OUTPUT

INPUT is a file, a directory (SageMaker's hour folders) or - for standard
input; plain, gzip or zstd, whatever its name. Several inputs make one trace,
ordered by arrival. The format is detected from the content.

Flags:
`

const examples = `
Examples:

    trace-convert conversation_trace.jsonl -o conversation.trace
    trace-convert conversation.trace --to mooncake -o back.jsonl
    trace-convert BurstGPT_1.csv --start 1h --end 2h -o hour.trace
    trace-convert capture/my-endpoint/ --bad-lines skip -o capture.trace
    zcat trace.jsonl.gz | trace-convert - --to jsonl -o - | head

Exit status: 0 done; 1 failed; 2 wrong usage; 3 done, but rows were skipped or
a file was cut short (the last lines on standard error say which); 130
interrupted.
`

// bind defines every flag.
func bind(o *options) *pflag.FlagSet {
	fs := pflag.NewFlagSet("trace-convert", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.StringVarP(&o.output, "output", "o", "", "output `path`; .trace and .rec are canonical, other names need --to; - is standard output")
	fs.StringVar(&o.to, "to", "", "target `format`: trace (default), jsonl, or a source format that can be written")
	fs.BoolVar(&o.strict, "strict", false, "fail where the target cannot carry everything")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "tell only warnings and losses on standard error")
	fs.BoolVar(&o.list, "list-formats", false, "print a table of all formats and exit")
	o.read = formats.BindFlags(fs)
	o.choose = formats.BindSelection(fs)
	fs.SetOutput(io.Discard)
	return fs
}

// validate settles what the flags leave open and names the one that is wrong.
func (o *options) validate(inputs []string) error {
	switch {
	case len(inputs) == 0:
		return errors.New("no INPUT given")
	case o.output == "":
		return errors.New("-o, --output: no output path given")
	}
	ext := filepath.Ext(o.output)
	canonical := ext == ".trace" || ext == ".rec"
	if o.to == "" {
		if !canonical && o.output != "-" {
			return fmt.Errorf("-o %s: only .trace and .rec are canonical names: say the format with --to", o.output)
		}
		o.to = "trace"
	}
	if canonical && o.to != "trace" {
		return fmt.Errorf("--to %s: the name %s says that the output is canonical; choose another name", o.to, o.output)
	}
	if o.to == "trace" {
		return nil
	}
	f, err := formats.Lookup(o.to)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if f.NewExporter == nil {
		return fmt.Errorf("--to %s: this format can be read only", o.to)
	}
	return nil
}
