package main

import (
	"errors"
	"fmt"
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

	flags  *pflag.FlagSet
	read   *formats.Flags
	choose *formats.SelectionFlags
	keep   *formats.CaptureFlags
}

const usage = `trace-convert turns a request trace into Retrace's canonical form, or a
canonical one into the form of another tool.

    trace-convert [flags] INPUT... -o OUTPUT

INPUT is a file, a directory (SageMaker's hour folders) or - for standard
input; plain, gzip or zstd, whatever its name. Several inputs make one trace,
ordered by arrival. The format is detected from the content.

OUTPUT is written under a temporary name beside it and takes its place when it
is complete, whatever was there; of a link, what it leads to is replaced. A
device or a pipe is written as it stands. After an error no output is left.

Flags:
`

const examples = `
Examples:

    trace-convert conversation_trace.jsonl -o conversation.trace
    trace-convert conversation.trace --to mooncake -o back.jsonl
    trace-convert BurstGPT_1.csv --start 1h --end 2h -o hour.trace
    trace-convert capture/my-endpoint/ --bad-lines skip -o capture.trace
    trace-convert requests.csv --capture blocks --salt-file salt -o log.trace
    zcat trace.jsonl.gz | trace-convert - --to jsonl -o - | head

Exit status: 0 done; 1 failed; 2 wrong usage; 3 done, but rows were skipped or
a file was cut short (the last lines on standard error say which); 130
interrupted.
`

// bind defines every flag.
func bind(o *options) *pflag.FlagSet {
	fs := pflag.NewFlagSet("trace-convert", pflag.ContinueOnError)
	fs.SortFlags = false
	o.flags = fs
	fs.StringVarP(&o.output, "output", "o", "", "`PATH`: where to write; - is standard output")
	fs.StringVar(&o.to, "to", "", "`FORMAT`: trace (canonical), jsonl (the same as JSON lines), or a source format that can be written; "+
		"default: trace, for names ending in .trace or .rec and for -")
	fs.BoolVar(&o.strict, "strict", false, "fail where the target cannot carry everything")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "tell only warnings and losses on standard error")
	fs.BoolVar(&o.list, "list-formats", false, "print a table of all formats and exit")
	o.read = formats.BindFlags(fs)
	o.choose = formats.BindSelection(fs)
	o.keep = formats.BindCapture(fs)
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
	switch {
	case o.to == "" && !canonical && o.output != "-":
		return fmt.Errorf("-o %s: the name does not tell the format: add --to jsonl (canonical records as JSON lines), "+
			"--to mooncake or another one of --list-formats, or choose a name ending in .trace", o.output)
	case o.to == "" && o.flags.Changed("to"):
		return errors.New("--to: no format given")
	case o.to == "":
		o.to = "trace"
	}
	f, err := formats.Lookup(o.to)
	switch {
	case err != nil:
		return fmt.Errorf("--to: %w", err)
	case o.to == "trace":
		return nil
	case f.NewExporter == nil:
		return fmt.Errorf("--to %s: this format can be read only", o.to)
	case canonical:
		return fmt.Errorf("--to %s: the name %s says that the output is canonical; choose another name", o.to, o.output)
	}
	return nil
}
