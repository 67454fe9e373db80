package proxy

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strconv"

	"retrace/openai"
)

// facts are what a request's body says.
type facts struct {
	openai.Params
	// shape is the API whose body it is, which of an invocation is another's.
	shape openai.API
	// messages or prompts are the prompt; of a rerank the query is the first.
	messages []openai.Message
	prompts  []openai.Prompt
	tools    []byte
	// session, cacheKey, previous and user are the client's own identities.
	session, cacheKey, previous, user string
	media                             []attachment
}

// attachment is a part of the prompt that is not text.
type attachment struct {
	kind    string
	content []byte
	inline  bool
}

var mediaNames = map[openai.MediaKind]string{openai.Image: "image", openai.Audio: "audio", openai.Video: "video", openai.File: "file"}

// unsaid are the parameters of a request that names none.
var unsaid = func() openai.Params {
	var r openai.CompletionRequest
	_ = openai.ParseCompletion([]byte("{}"), &r) // which is a request
	return r.Params
}()

// parseFacts reads a request's body. What cannot be read says nothing; the
// server's answer tells whether it was right.
func parseFacts(api openai.API, contentType string, body []byte) facts {
	f := facts{Params: unsaid, shape: api}
	if api == openai.Transcriptions {
		f.form(contentType, body)
		return f
	}
	if api == openai.Invocations || api == openai.InvocationsStream {
		shape, err := openai.InvocationShape(body)
		if err != nil || shape == "" {
			return f
		}
		f.shape = shape
	}
	if f.parse(body) != nil {
		return facts{Params: unsaid, shape: f.shape}
	}
	f.attach()
	f.identities(body)
	return f
}

// parse reads the body of the shape.
func (f *facts) parse(body []byte) (err error) {
	switch f.shape {
	case openai.Completions:
		var r openai.CompletionRequest
		err = openai.ParseCompletion(body, &r)
		f.Params, f.prompts = r.Params, r.Prompts
	case openai.Chat:
		var r openai.ChatRequest
		err = openai.ParseChat(body, &r)
		f.Params, f.messages, f.tools = r.Params, r.Messages, r.Tools
	case openai.Responses:
		var r openai.ResponsesRequest
		err = openai.ParseResponses(body, &r)
		f.Params, f.messages, f.tools, f.previous = r.Params, r.Messages, r.Tools, r.Previous
		if r.Instructions != "" {
			f.messages = append([]openai.Message{{Role: "system", Content: r.Instructions}}, f.messages...)
		}
	case openai.Embeddings:
		var r openai.EmbeddingRequest
		err = openai.ParseEmbedding(body, &r)
		f.Params, f.prompts = r.Params, r.Inputs
	case openai.Rerank:
		var r openai.RerankRequest
		err = openai.ParseRerank(body, &r)
		f.Params, f.prompts = r.Params, append(f.prompts, openai.Prompt{Text: r.Query})
		for _, text := range r.Documents {
			f.prompts = append(f.prompts, openai.Prompt{Text: text})
		}
	default:
		var r openai.GenerateRequest
		err = openai.ParseGenerate(body, &r)
		f.Params, f.prompts = r.Params, []openai.Prompt{{Text: r.Inputs}}
	}
	return err
}

// attach lists the media of the messages.
func (f *facts) attach() {
	for i := range f.messages {
		for j := range f.messages[i].Media {
			m := &f.messages[i].Media[j]
			f.media = append(f.media, attachment{kind: mediaNames[m.Kind], content: m.Content(), inline: m.Inline})
		}
	}
}

// identities reads the members by which clients name sessions, caches and users.
func (f *facts) identities(body []byte) {
	_ = openai.EachMember(body, func(key string, start, end int) error {
		switch key {
		case "session_id":
			f.session = openai.Text(body[start:end])
		case "prompt_cache_key":
			f.cacheKey = openai.Text(body[start:end])
		case "user":
			f.user = openai.Text(body[start:end])
		}
		return nil
	})
}

// form reads the form of a transcription.
func (f *facts) form(contentType string, body []byte) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return
	}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := r.NextRawPart()
		if err != nil {
			return
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return
		}
		switch part.FormName() {
		case "file":
			f.media = append(f.media, attachment{kind: "audio", content: value, inline: true})
		case "model":
			f.Model = string(value)
		case "stream":
			f.Stream, _ = strconv.ParseBool(string(value))
		}
	}
}
