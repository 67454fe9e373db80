package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"retrace/openai"
	"retrace/replay"
)

// apiFlags say how requests are made beyond their prompts.
type apiFlags struct {
	set       *pflag.FlagSet
	stream    bool
	fromTrace bool
	lora      []string
	documents int
	context   int64
	over      string
	mediaDir  string
}

// apiNames are those that --api takes.
func apiNames() string {
	var names []string
	for _, api := range openai.APIs() {
		names = append(names, string(api))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func (f *apiFlags) bind(set *pflag.FlagSet) {
	f.set = set
	set.BoolVar(&f.stream, "stream", false, "stream the answers; --stream=false: none; default: all but those of bodies that say \"stream\": false, and of SageMaker's /invocations")
	set.BoolVar(&f.fromTrace, "model-from-trace", false, "ask for each request's own model, where the trace has one")
	set.StringSliceVar(&f.lora, "lora-modules", nil, "`A,B`: adapters, one of which each session asks for as its model, drawn by --seed")
	set.IntVar(&f.documents, "rerank-documents", 1, "`N`: documents of a generated rerank request")
	set.Int64Var(&f.context, "context-limit", 0, "`N`: the model's context in tokens, for --over-context; default: what /v1/models tells")
	set.StringVar(&f.over, "over-context", string(replay.ContextSend), "`POLICY`: send, skip, trim-output or trim-prompt (to its beginning) a request whose prompt and output exceed the context")
	set.StringVar(&f.mediaDir, "media-dir", "", "`DIR`: put the files below it that bodies name (\"file:NAME\", or the file of a transcription) into the requests; default: none is read")
}

// validate names the flag that is wrong, or would do nothing.
func (f *apiFlags) validate(o *options) error {
	if _, err := openai.ParseAPI(o.api); err != nil {
		return fmt.Errorf("--api %s: want %s", o.api, apiNames())
	}
	api := openai.API(o.api)
	switch {
	case o.prompt == "tokens" && replay.DefaultPrompt(api) != replay.Tokens:
		return fmt.Errorf("--prompt tokens: the %s API takes text", o.api)
	case o.prompt != "" && o.prompt != "literal" && api == openai.Transcriptions:
		return errors.New("--api transcriptions: no audio is made up, so the trace must have bodies (--prompt literal)")
	case f.fromTrace && o.model != "":
		return errors.New("--model-from-trace and --model exclude each other")
	case f.fromTrace && len(f.lora) > 0:
		return errors.New("--model-from-trace and --lora-modules exclude each other")
	case f.set.Changed("lora-modules") && (len(f.lora) == 0 || oneOf("", f.lora...)):
		return errors.New("--lora-modules: want names, such as a,b")
	case f.set.Changed("rerank-documents") && api != openai.Rerank:
		return errors.New("--rerank-documents needs --api rerank")
	case f.documents < 1:
		return errors.New("--rerank-documents: want 1 or more")
	case f.set.Changed("context-limit") && f.context < 1:
		return errors.New("--context-limit: want 1 or more")
	case !oneOf(f.over, "send", "skip", "trim-output", "trim-prompt"):
		return fmt.Errorf("--over-context %s: want send, skip, trim-output or trim-prompt", f.over)
	}
	if f.mediaDir == "" {
		return nil
	}
	if info, err := os.Stat(f.mediaDir); err != nil || !info.IsDir() {
		return fmt.Errorf("--media-dir %s: want a directory", f.mediaDir)
	}
	return nil
}

func (f *apiFlags) apply(c *replay.Config) {
	c.Requests = replay.RequestConfig{
		ModelFromTrace: f.fromTrace, LoRA: f.lora, RerankDocuments: f.documents,
		ContextLimit: f.context, OverContext: replay.ContextPolicy(f.over), MediaDir: f.mediaDir,
	}
	if f.set.Changed("stream") {
		c.Requests.Stream = replay.StreamNever
		if f.stream {
			c.Requests.Stream = replay.StreamAlways
		}
	}
}
