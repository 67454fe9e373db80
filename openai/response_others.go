package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
)

// EmbeddingsWriter renders the answer of an embeddings request.
type EmbeddingsWriter struct {
	// ID is the answer's id (embd-…), Model the model's name, Created its time
	// in seconds since 1970.
	ID, Model string
	Created   int64
	// Base64 asks for base64 of little-endian 32-bit floats.
	Base64 bool
}

// Append appends the answer with one vector for each input.
func (w *EmbeddingsWriter) Append(dst []byte, vectors [][]float32, u *Usage) []byte {
	dst = AppendQuoted(append(dst, `{"id":`...), w.ID)
	dst = strconv.AppendInt(append(dst, `,"object":"list","created":`...), w.Created, 10)
	dst = AppendQuoted(append(dst, `,"model":`...), w.Model)
	dst = append(dst, `,"data":[`...)
	for i, v := range vectors {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `{"index":`...), int64(i), 10)
		dst = append(dst, `,"object":"embedding","embedding":`...)
		if w.Base64 {
			dst = append(appendBase64(append(dst, '"'), v), '"')
		} else {
			dst = appendVector(dst, v)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	return append(appendUsage(dst, u), '}')
}

func appendVector(dst []byte, v []float32) []byte {
	dst = append(dst, '[')
	for k, x := range v {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(x), 'g', -1, 32)
	}
	return append(dst, ']')
}

func appendBase64(dst []byte, v []float32) []byte {
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.AppendEncode(dst, raw)
}

// Ranked is one result of a rerank request.
type Ranked struct {
	// Index is the document's place in the request, Text the document, Score
	// its relevance from 0 to 1.
	Index int
	Text  string
	Score float64
}

// AppendRanking appends the answer of a rerank request (id rerank-…), its
// results as they stand.
func AppendRanking(dst []byte, id, model string, results []Ranked, u *Usage) []byte {
	dst = AppendQuoted(append(dst, `{"id":`...), id)
	dst = AppendQuoted(append(dst, `,"model":`...), model)
	dst = strconv.AppendInt(append(dst, `,"usage":{"prompt_tokens":`...), u.Prompt, 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), u.Total, 10)
	dst = append(dst, `},"results":[`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		r := &results[i]
		dst = strconv.AppendInt(append(dst, `{"index":`...), int64(r.Index), 10)
		dst = AppendQuoted(append(dst, `,"document":{"text":`...), r.Text)
		dst = append(dst, `,"multi_modal":null},"relevance_score":`...)
		dst = append(strconv.AppendFloat(dst, r.Score, 'g', -1, 64), '}')
	}
	return append(dst, "]}"...)
}

// Transcript is the whole answer of a transcription.
type Transcript struct {
	// Text is the text, Language its language, Seconds the audio's duration.
	Text     []byte
	Language string
	Seconds  float64
	// Tokens are the text's token ids, of the verbose form.
	Tokens []uint32
}

// AppendTranscript appends a transcript as JSON: the text, and the duration in
// whole seconds, rounded up.
func AppendTranscript(dst []byte, t *Transcript) []byte {
	dst = appendQuotedBytes(append(dst, `{"text":`...), t.Text)
	dst = strconv.AppendInt(append(dst, `,"usage":{"type":"duration","seconds":`...), int64(math.Ceil(t.Seconds)), 10)
	return append(dst, "}}"...)
}

// AppendVerboseTranscript appends a transcript in the form verbose_json: all of
// it is one segment.
func AppendVerboseTranscript(dst []byte, t *Transcript) []byte {
	seconds := strconv.FormatFloat(t.Seconds, 'f', -1, 64)
	dst = append(append(append(dst, `{"duration":"`...), seconds...), '"')
	dst = AppendQuoted(append(dst, `,"language":`...), t.Language)
	dst = appendQuotedBytes(append(dst, `,"text":`...), t.Text)
	dst = append(dst, `,"segments":[{"id":0,"avg_logprob":-0.5,"compression_ratio":1.0,"end":`...)
	dst = append(dst, seconds...)
	dst = append(dst, `,"no_speech_prob":null,"seek":0,"start":0.0,"temperature":0.0,"text":`...)
	dst = appendQuotedBytes(dst, t.Text)
	dst = appendIDs(append(dst, `,"tokens":`...), t.Tokens)
	return append(dst, `}],"words":null}`...)
}

// AppendTranscriptChunk appends one event of a transcription's stream; head is
// what TranscriptHead made.
func AppendTranscriptChunk(dst, head []byte, c *Chunk) []byte {
	dst = appendQuotedBytes(append(append(dst, head...), `{"delta":{"content":`...), c.Text)
	dst = appendNullable(append(dst, `},"finish_reason":`...), c.Finish)
	dst = appendNullable(append(dst, `,"stop_reason":`...), c.Stop)
	return endEvent(appendUsage(append(dst, "}]"...), c.Usage))
}

// AppendTranscriptUsage appends the event with the whole usage.
func AppendTranscriptUsage(dst, head []byte, u *Usage) []byte {
	return endEvent(appendUsage(append(append(dst, head...), ']'), u))
}

// TranscriptHead makes the beginning of every event of a transcription's
// stream (id trsc-…).
func TranscriptHead(id, model string, created int64) []byte {
	dst := AppendQuoted([]byte(`data: {"id":`), id)
	dst = strconv.AppendInt(append(dst, `,"object":"transcription.chunk","created":`...), created, 10)
	return append(AppendQuoted(append(dst, `,"model":`...), model), `,"choices":[`...)
}

// Generated is what the last event, or the whole answer, of TGI says.
type Generated struct {
	// Text is the whole text.
	Text []byte
	// Finish is length, eos_token or stop_sequence.
	Finish string
	// Tokens and Prefill count the output and the prompt.
	Tokens, Prefill int64
	// Details says whether a whole answer has the counts; a stream's last event
	// always has.
	Details bool
}

// AppendGeneratedToken appends one event of a TGI stream: a token, and with the
// last one the whole text.
func AppendGeneratedToken(dst []byte, index int, id uint32, text []byte, last *Generated) []byte {
	dst = strconv.AppendInt(append(dst, `data:{"index":`...), int64(index), 10)
	dst = strconv.AppendUint(append(dst, `,"token":{"id":`...), uint64(id), 10)
	dst = appendQuotedBytes(append(dst, `,"text":`...), text)
	dst = append(dst, `,"logprob":-0.5,"special":false},"generated_text":`...)
	if last == nil {
		return append(dst, "null,\"details\":null}\n\n"...)
	}
	dst = appendQuotedBytes(dst, last.Text)
	dst = appendDetails(append(dst, `,"details":`...), last, true)
	return append(dst, "}\n\n"...)
}

// AppendGenerated appends TGI's whole answer: [{"generated_text": …}].
func AppendGenerated(dst []byte, g *Generated) []byte {
	dst = appendQuotedBytes(append(dst, `[{"generated_text":`...), g.Text)
	if g.Details {
		dst = appendDetails(append(dst, `,"details":`...), g, false)
	}
	return append(dst, "}]"...)
}

func appendDetails(dst []byte, g *Generated, stream bool) []byte {
	dst = AppendQuoted(append(dst, `{"finish_reason":`...), g.Finish)
	dst = strconv.AppendInt(append(dst, `,"generated_tokens":`...), g.Tokens, 10)
	dst = append(dst, `,"seed":null`...)
	if stream {
		dst = strconv.AppendInt(append(dst, `,"input_length":`...), g.Prefill, 10)
	} else {
		dst = append(dst, `,"prefill":[],"tokens":[]`...)
	}
	return append(dst, '}')
}
