package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"retrace/cmd/internal/cli"
	"retrace/hashing/tokenizer"
	"retrace/record/capture"
	"retrace/record/proxy"
)

// maxMegabytes bounds --rotate-size, far beyond any disk.
const maxMegabytes = 1_000_000_000

// options are the flags of the command.
type options struct {
	upstream, listen, admin string
	mode                    string
	tokenizer, saltFile     string
	grace                   time.Duration
	rotateSize              int64 // megabytes
	config                  proxy.Config
}

// bind makes the flag set.
func (o *options) bind() *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&o.upstream, "upstream", "", "`URL`: base of the server, as http://localhost:8000; h2c://HOST speaks HTTP/2 without TLS; required")
	f.StringVar(&o.listen, "listen", "", "`HOST:PORT`: where to listen, for HTTP/1.1 and HTTP/2 without TLS; port 0 picks a free one; required")
	f.StringVarP(&o.config.Output, "output", "o", "", "`PATH`: the trace to write; required")
	f.BoolVar(&o.config.Force, "force", false, "overwrite an existing file")
	f.Int64Var(&o.rotateSize, "rotate-size", 0, "`MB`: begin another file at so many megabytes: PATH's NAME.trace is then NAME.0001.trace, and so on")
	f.DurationVar(&o.config.RotateEvery, "rotate-every", 0, "begin another file after so long, with the next record")
	f.StringVar(&o.mode, "capture", string(capture.Blocks), "`lengths|blocks|full`: what to keep: lengths and times; prefix blocks as keyed hashes besides; bodies and identities besides")
	f.IntVar(&o.config.BlockSize, "block-size", 16, "tokens in a prefix block")
	f.StringVar(&o.tokenizer, "tokenizer", "", "`FILE`: the model's tokenizer.json, for prompts of text; without it their blocks are of bytes")
	f.StringVar(&o.saltFile, "salt-file", "", "`FILE`: the secret that keys all hashes, made if absent, of mode 0600; default: the variable "+capture.SaltEnv+", else drawn for this trace and forgotten")
	f.StringVar(&o.config.SessionHeader, "session-header", "", "`NAME`: a request header that names the session")
	f.StringVar(&o.admin, "admin", "", "`HOST:PORT`: where to serve /-/metrics and /-/healthz; default: nowhere")
	f.DurationVar(&o.grace, "grace", 30*time.Second, "how long running requests may go on after a signal to stop")
	return f
}

// validate checks the flags and names the one that is wrong.
func (o *options) validate() (err error) {
	for _, f := range []struct{ flag, value string }{{"--upstream", o.upstream}, {"--listen", o.listen}, {"--output", o.config.Output}} {
		if f.value == "" {
			return fmt.Errorf("%s: found nothing, it is required", f.flag)
		}
	}
	if o.config.Upstream, err = proxy.ParseUpstream(o.upstream); err != nil {
		return fmt.Errorf("--%w", err)
	}
	if err := checkAddress("--listen", o.listen); err != nil {
		return err
	}
	if o.admin != "" {
		if err := checkAddress("--admin", o.admin); err != nil {
			return err
		}
	}
	if o.config.Capture, err = capture.ParseMode(o.mode); err != nil {
		return fmt.Errorf("--%w", err)
	}
	if o.config.BlockSize < 1 || o.config.BlockSize > proxy.MaxBlockSize {
		return fmt.Errorf("--block-size: found %d, expected 1 to %d", o.config.BlockSize, proxy.MaxBlockSize)
	}
	if o.rotateSize < 0 || o.rotateSize > maxMegabytes {
		return fmt.Errorf("--rotate-size: found %d, expected 0 to %d", o.rotateSize, maxMegabytes)
	}
	o.config.RotateSize = o.rotateSize * 1_000_000
	if o.config.RotateEvery != 0 && o.config.RotateEvery < time.Second {
		return fmt.Errorf("--rotate-every: found %v, expected at least 1s", o.config.RotateEvery)
	}
	if o.grace < 0 {
		return fmt.Errorf("--grace: found %v, expected at least 0s", o.grace)
	}
	if o.config.Output == "-" {
		return errors.New("--output: found -, expected a file: the trace is read again in the end")
	}
	return nil
}

// checkAddress finds what can be no address.
func checkAddress(flag, addr string) error {
	if !cli.ValidAddress(addr) {
		return fmt.Errorf("%s: found %s, expected HOST:PORT as 127.0.0.1:9000", flag, addr)
	}
	return nil
}

// load reads the files that flags name.
func (o *options) load() (err error) {
	if o.tokenizer != "" {
		if o.config.Tokenizer, err = tokenizer.Load(o.tokenizer); err != nil {
			return err
		}
	}
	o.config.Salt, err = capture.LoadSalt(o.saltFile)
	return err
}

const usageHead = `trace-record is a reverse proxy before an OpenAI-compatible server. It passes
everything on unchanged, streams as they come, and writes the requests that
generate as a trace, which trace-replay and trace-analyze read.

Usage:
  trace-record --upstream URL --listen ADDR -o OUT.trace [flags]

A record holds arrival, API, model, lengths, the times and the end of the answer,
parameters, session, and the prompt's prefix blocks as keyed hashes; no text, no
credential, no query and no other header (docs/record.md). Where the disk is too
slow or full, records are dropped and counted, never requests.

When it is ready it says so in one line on stderr. SIGINT or SIGTERM stop it:
running requests get --grace to end; a second signal ends them at once.

Examples:
  trace-record --upstream http://localhost:8000 --listen 127.0.0.1:9000 -o today.trace
  trace-record --upstream http://localhost:8000 --listen :9000 -o today.trace \
    --tokenizer tokenizer.json --salt-file salt --admin 127.0.0.1:9001

Flags:
`

const usageTail = `
Exit status: 0 stopped by SIGTERM; 1 failed; 2 wrong usage; 3 stopped, but
records were dropped; 130 interrupted (SIGINT).
`

// usage writes the whole help.
func usage(w io.Writer, f *pflag.FlagSet) error {
	_, err := io.WriteString(w, usageHead+cli.FlagUsages(f)+usageTail)
	return err
}
