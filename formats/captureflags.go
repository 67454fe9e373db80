package formats

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"retrace/hashing/tokenizer"
	"retrace/record/capture"
)

// CaptureFlags are the flags that say what is kept of a log.
type CaptureFlags struct {
	set                   *pflag.FlagSet
	mode, salt, tokenizer string
}

// BindCapture defines --capture, --salt-file and --tokenizer.
func BindCapture(fs *pflag.FlagSet) *CaptureFlags {
	f := &CaptureFlags{set: fs}
	fs.StringVar(&f.mode, "capture", "", "`lengths|blocks|full`: what to keep of an openai-log: lengths and times; prefix blocks under salted hashes besides; bodies and names besides; default: blocks")
	fs.StringVar(&f.salt, "salt-file", "", "`FILE`: the secret that keys the hashes of an openai-log, made if absent, of mode 0600; "+
		"default: the variable "+capture.SaltEnv+", else drawn for this run and forgotten")
	fs.StringVar(&f.tokenizer, "tokenizer", "", "`FILE`: a tokenizer.json, so that blocks of an openai-log's text are of tokens; default: of bytes, 4 for each token of --block-size")
	return f
}

// Apply sets the options.
func (f *CaptureFlags) Apply(o *Options) (err error) {
	if f.set.Changed("capture") {
		if o.Capture, err = capture.ParseMode(f.mode); err != nil {
			return fmt.Errorf("--capture: %w", err)
		}
	}
	if o.SaltFile = f.salt; f.salt == "" && f.set.Changed("salt-file") {
		return errors.New("--salt-file: no file given")
	}
	if f.tokenizer != "" {
		t, err := tokenizer.Load(f.tokenizer)
		if err != nil {
			return fmt.Errorf("--tokenizer: %w", err)
		}
		o.Encode = t.EncodePrompt
	}
	return nil
}
