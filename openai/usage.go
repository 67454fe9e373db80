package openai

import (
	"encoding/json"
	"time"
)

// Unknown marks a count that the server did not tell. It is not zero.
const Unknown int64 = -1

// Usage is what a server says it counted, in tokens; Unknown where it does not
// say. Cached is the part of Prompt that came out of its prefix cache, Media
// that of images, audio and video, Reasoning the part of Completion that was
// reasoning.
type Usage struct {
	Prompt     int64
	Completion int64
	Total      int64
	Cached     int64
	Reasoning  int64
	Media      int64
}

// NoUsage is a Usage of which nothing is known.
func NoUsage() Usage {
	return Usage{Prompt: Unknown, Completion: Unknown, Total: Unknown, Cached: Unknown, Reasoning: Unknown, Media: Unknown}
}

// merge takes over what u knows: of several usages in one stream the last one
// counts, field by field, for vLLM's running usage lacks the details that its
// last one has.
func (old Usage) merge(u Usage) Usage {
	return Usage{
		Prompt:     known(u.Prompt, old.Prompt),
		Completion: known(u.Completion, old.Completion),
		Total:      known(u.Total, old.Total),
		Cached:     known(u.Cached, old.Cached),
		Reasoning:  known(u.Reasoning, old.Reasoning),
		Media:      known(u.Media, old.Media),
	}
}

func known(n, otherwise int64) int64 {
	if n != Unknown {
		return n
	}
	return otherwise
}

// usageOf reads a usage object, of either of the names that the APIs have:
// prompt_tokens and completion_tokens, or input_tokens and output_tokens. TGI's
// details have names of their own.
func usageOf(u object) Usage {
	prompt, completion := firstObject(u, "prompt_tokens_details", "input_tokens_details"),
		firstObject(u, "completion_tokens_details", "output_tokens_details")
	return Usage{
		Prompt:     firstCount(u, "prompt_tokens", "input_tokens"),
		Completion: firstCount(u, "completion_tokens", "output_tokens"),
		Total:      countOf(u["total_tokens"]),
		Cached:     countOf(prompt["cached_tokens"]),
		Reasoning:  countOf(completion["reasoning_tokens"]),
		Media:      mediaOf(prompt),
	}
}

// mediaOf is the tokens of media in a prompt's details: vLLM's
// multimodal_tokens, an object by modality, or a count for each modality.
func mediaOf(details object) int64 {
	sum := Unknown
	add := func(raw []byte) {
		if n := countOf(raw); n != Unknown {
			sum = max(sum, 0) + n
		}
	}
	by, _ := asObject(details["multimodal_tokens"])
	for _, raw := range by {
		add(raw)
	}
	if by == nil {
		for _, name := range mediaCounts {
			add(details[name])
		}
	}
	return sum
}

var mediaCounts = [...]string{"image_tokens", "audio_tokens", "video_tokens"}

func firstObject(obj object, names ...string) object {
	for _, name := range names {
		if o, ok := asObject(obj[name]); ok {
			return o
		}
	}
	return nil
}

func firstCount(obj object, names ...string) int64 {
	for _, name := range names {
		if n := countOf(obj[name]); n != Unknown {
			return n
		}
	}
	return Unknown
}

// Untold marks a duration that the server did not tell.
const Untold time.Duration = -1

// ServerTimes are durations that a server tells of one request: from its
// arrival to when it was scheduled, from there to its first token, from there
// to its last. Untold where it does not.
type ServerTimes struct {
	Queue   time.Duration
	Prefill time.Duration
	Decode  time.Duration
}

// NoTimes are ServerTimes of which nothing is known.
func NoTimes() ServerTimes { return ServerTimes{Queue: Untold, Prefill: Untold, Decode: Untold} }

// timesOf reads vLLM's "metrics" (--enable-per-request-metrics) or llama.cpp's
// "timings", both in milliseconds.
func timesOf(top object) ServerTimes {
	t := NoTimes()
	if m, ok := asObject(top["metrics"]); ok {
		t.Queue, t.Prefill, t.Decode = millis(m["queue_time_ms"]), millis(m["time_to_first_token_ms"]), millis(m["generation_time_ms"])
	}
	if m, ok := asObject(top["timings"]); ok {
		t.Prefill, t.Decode = millis(m["prompt_ms"]), millis(m["predicted_ms"])
	}
	return t
}

// merge takes over what u knows.
func (old ServerTimes) merge(u ServerTimes) ServerTimes {
	for _, f := range [...]struct{ to, from *time.Duration }{{&old.Queue, &u.Queue}, {&old.Prefill, &u.Prefill}, {&old.Decode, &u.Decode}} {
		if *f.from != Untold {
			*f.to = *f.from
		}
	}
	return old
}

// millis is a number of milliseconds, Untold for anything else and what no
// request takes.
func millis(raw []byte) time.Duration {
	const most = 1e12 // about 32 years
	var ms float64
	if len(raw) == 0 || isNull(raw) || json.Unmarshal(raw, &ms) != nil || ms < 0 || ms > most {
		return Untold
	}
	return time.Duration(ms * float64(time.Millisecond))
}
