package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"retrace/cmd/internal/cli"
	"retrace/hashing/tokenizer"
	"retrace/internal/plural"
	"retrace/replay"
	"retrace/replay/prompt"
)

// askServer is the --tokenizer that stands for the server's own.
const askServer = "server"

// promptFlags say what prompts are made of, beside --prompt, --salt and --vocab.
type promptFlags struct {
	set                  *pflag.FlagSet
	tokenizer, namespace string
	// digest is the vocabulary's that a file gave.
	digest string
}

func (p *promptFlags) bind(f *pflag.FlagSet) {
	p.set = f
	f.StringVar(&p.tokenizer, "tokenizer", "", "`FILE|server`: choose the words and ids of prompts, and tell the template's overhead, by the model's tokenizer.json, or by the server's /tokenize; default: words and ids that suit all public models tried, and a probe of the overhead")
	f.StringVar(&p.namespace, "namespace", "", "`TEXT`: stands in for the trace's own name space: traces replayed under the same one share the prompts of equal block ids; recorded")
}

// validate names the flag that is wrong.
func (p *promptFlags) validate() error {
	switch {
	case p.set.Changed("tokenizer") && p.tokenizer == "":
		return errors.New("--tokenizer: want a file, or server")
	case p.set.Changed("namespace") && p.namespace == "":
		return errors.New("--namespace: want a text")
	}
	return nil
}

// apply settles what prompts are made of, once the kind of prompts is known.
// The note, if any, tells of the tokenizer.
func (p *promptFlags) apply(cfg *replay.Config, plan *survey) (note string, err error) {
	if p.namespace != "" {
		cfg.Header.Namespace = p.namespace
	}
	cfg.Prompts.Bodiless = cfg.Prompt == replay.Literal && plan.bodies() < plan.requests
	if p.tokenizer == "" {
		return "", nil
	}
	kind := cfg.Prompt
	if kind == replay.Literal {
		if !cfg.Prompts.Bodiless && plan.requests > 0 {
			return "", cli.UsageError{Err: errors.New("--tokenizer: the trace's own bodies are sent, and no prompts made")}
		}
		kind = replay.DefaultPrompt(cfg.API)
	}
	if p.tokenizer == askServer {
		if kind == replay.Tokens {
			return "", cli.UsageError{Err: errors.New("--tokenizer server: prompts of token ids have no words to ask for")}
		}
		cfg.Prompts.AskServer = true
		return "", nil
	}
	return p.load(cfg, kind)
}

// load reads the file and chooses by it what the kind of prompts needs.
func (p *promptFlags) load(cfg *replay.Config, kind replay.PromptMode) (note string, err error) {
	t, err := tokenizer.Load(p.tokenizer)
	if err != nil {
		return "", fmt.Errorf("--tokenizer: %w", err)
	}
	v := &cfg.Prompts.Vocabulary
	made := "usual"
	if kind == replay.Tokens {
		v.IDs, err = prompt.ChooseIDs(t, cfg.VocabLo, cfg.VocabHi)
		if n := len(v.IDs); n > 0 {
			made = plural.Of(int64(n), "ordinary id")
		}
		made = "token ids: " + made
	} else {
		v.Words, err = prompt.ChooseWords(t)
		if n := len(v.Words); n > 0 {
			made = plural.Of(int64(n), "word")
			if n < prompt.FewWords {
				made += fmt.Sprintf(" (few: prompts that share nothing begin alike at odds of 1 in %d)", n)
			}
		}
		made = "words: " + made
		cfg.Prompts.Frame = &replay.Frame{Head: int64(len(t.Prefix())), Tail: int64(len(t.Suffix()))}
	}
	if err != nil {
		return "", fmt.Errorf("--tokenizer %s: %w", p.tokenizer, err)
	}
	note = fmt.Sprintf("tokenizer %s of %s, %s", p.tokenizer, plural.Of(int64(t.VocabSize()), "id"), made)
	if p.digest = v.Digest(); p.digest != "" {
		note += " (vocabulary " + p.digest + ")"
	}
	return note, nil
}

// identity is what the shards of a run have in common: not the file's path.
func (p *promptFlags) identity() string {
	if p.tokenizer == "" || p.tokenizer == askServer {
		return p.tokenizer
	}
	return "file " + p.digest
}
