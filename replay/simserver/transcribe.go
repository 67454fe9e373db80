package simserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"strconv"

	"retrace/openai"
)

// wordsPerSecond is how fast people of the simulated server's recordings speak.
const wordsPerSecond = 2.5

// The bounds of a form: its parts, and a field's length in bytes.
const (
	maxParts     = 64
	maxFieldSize = 1 << 20
)

// transcription is the form of POST /v1/audio/transcriptions.
type transcription struct {
	openai.Params
	format   string // response_format
	language string
	prompt   string
	hasFile  bool
	seconds  float64
	digest   string
}

// parseTranscription reads the form.
func parseTranscription(body []byte, contentType string, f *transcription) *apiError {
	*f = transcription{Params: openai.Params{MaxTokens: openai.Unset, N: 1, Sampling: openai.DefaultSampling(),
		Thinking: openai.Thinking{Budget: openai.Unset}}, format: "json", language: "en"}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return unsupported("multipart/form-data with a boundary")
	}
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for n := 0; ; n++ {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return badRequest("read form: %v", err)
		}
		if n == maxParts {
			return badRequest("read form: more than %d parts", maxParts)
		}
		if fail := f.part(part); fail != nil {
			return fail
		}
	}
	if !f.hasFile {
		return badRequest("file: Field required")
	}
	return f.check()
}

// part reads one part of the form: the file, or a field.
func (f *transcription) part(part *multipart.Part) *apiError {
	if part.FormName() == "file" {
		head := make([]byte, 4096)
		n, _ := io.ReadFull(part, head)
		sum := sha256.New()
		sum.Write(head[:n])
		rest, err := io.Copy(sum, part)
		if err != nil {
			return badRequest("read form: field file: %v", err)
		}
		f.hasFile, f.seconds, f.digest = true, audioSeconds(head[:n], int64(n)+rest), hex.EncodeToString(sum.Sum(nil))
		return nil
	}
	value, err := io.ReadAll(io.LimitReader(part, maxFieldSize+1))
	if err != nil {
		return badRequest("read form: field %s: %v", part.FormName(), err)
	}
	if len(value) > maxFieldSize {
		return badRequest("read form: field %s: found more than %d bytes", part.FormName(), maxFieldSize)
	}
	if err := f.set(part.FormName(), string(value)); err != nil {
		return badRequest("read form: field %s: found %q, expected %v", part.FormName(), openai.Snippet(value), err)
	}
	return nil
}

var (
	errNumber = errors.New("a number")
	errCount  = errors.New("an integer of at least 0")
	errBool   = errors.New("true or false")
)

// set takes one field's value over; what is not known does nothing.
func (f *transcription) set(name, value string) error {
	floats := map[string]*float64{"temperature": &f.Sampling.Temperature, "top_p": &f.Sampling.TopP, "min_p": &f.Sampling.MinP,
		"presence_penalty": &f.Sampling.PresencePenalty, "frequency_penalty": &f.Sampling.FrequencyPenalty,
		"repetition_penalty": &f.Sampling.RepetitionPenalty}
	texts := map[string]*string{"model": &f.Model, "response_format": &f.format, "language": &f.language, "prompt": &f.prompt, "cache_salt": &f.CacheSalt}
	flags := map[string]*bool{"stream": &f.Stream, "stream_include_usage": &f.IncludeUsage, "stream_continuous_usage_stats": &f.ContinuousUsage,
		"ignore_eos": &f.IgnoreEOS}
	counts := map[string]*int64{"max_completion_tokens": &f.MaxTokens, "min_tokens": &f.MinTokens}
	if to := texts[name]; to != nil {
		*to = value
	} else if to := floats[name]; to != nil {
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(x) {
			return errNumber
		}
		*to = x
	} else if to := flags[name]; to != nil {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return errBool
		}
		*to = on
	} else if to := counts[name]; to != nil {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return errCount
		}
		*to = n
	}
	return nil
}

// check refuses what vLLM refuses.
func (f *transcription) check() *apiError {
	switch {
	case f.format != "json" && f.format != "text" && f.format != "verbose_json":
		return badRequest("Currently only support response_format: `text`, `json` or `verbose_json`")
	case f.format == "verbose_json" && f.Stream:
		return badRequest("verbose_json format doesn't support streaming case")
	}
	return nil
}

// prepareTranscription makes a prompt of the sound and the form's prompt. The
// answer has wordsPerSecond tokens a second of sound.
func (s *Server) prepareTranscription(g *generation) *apiError {
	f := &g.form
	n := s.audioTokens(f.seconds)
	if n > s.cfg.MaxModelLen {
		return badRequest("This model's maximum context length is %d tokens. However, your prompt contains at least %d input tokens.", s.cfg.MaxModelLen, n)
	}
	g.tokens = s.tok.head(g.tokens[:0], s.cfg.BOSTokens)
	g.media = append(g.media, placed{len(g.tokens), len(g.tokens) + n, f.digest})
	for range n {
		g.tokens = append(g.tokens, s.tok.placeholder(openai.Audio))
	}
	g.tokens = s.tok.append(g.tokens, f.prompt)
	g.prompts = 1
	g.plan.natural = max(1, int(math.Ceil(min(f.seconds, maxMediaTokens)*wordsPerSecond)))
	if room := s.cfg.MaxModelLen - len(g.tokens); room > 0 {
		f.MaxTokens = trim(f.MaxTokens, int64(room))
	}
	return s.addPrompt(g, g.tokens)
}

// trim is a wish that may be Unset, and no more than the room.
func trim(wish, room int64) int64 {
	if wish == openai.Unset {
		return wish
	}
	return min(wish, room)
}

// appendTranscript appends the whole answer in the format asked for.
func (s *Server) appendTranscript(dst []byte, g *generation, c *openai.Chunk) []byte {
	t := &openai.Transcript{Text: c.Text, Language: g.form.language, Seconds: g.form.seconds}
	switch g.form.format {
	case "text":
		return append(append(dst, c.Text...), '\n')
	case "verbose_json":
		q := g.call.seqs[0]
		t.Tokens = []uint32{}
		for i := range q.target {
			t.Tokens = append(t.Tokens, q.tokenID(s.tok, i))
		}
		return openai.AppendVerboseTranscript(dst, t)
	}
	return openai.AppendTranscript(dst, t)
}
