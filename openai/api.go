package openai

import (
	"fmt"
	"strings"
)

// API names one of the endpoints that answer requests of a trace.
type API string

// The APIs. Their names stand in traces, recordings and flags.
const (
	// Completions is POST /v1/completions.
	Completions API = "completions"
	// Chat is POST /v1/chat/completions.
	Chat API = "chat"
	// Responses is POST /v1/responses.
	Responses API = "responses"
	// Embeddings is POST /v1/embeddings.
	Embeddings API = "embeddings"
	// Rerank is POST /v1/rerank: a query and the documents to be ranked by it.
	Rerank API = "rerank"
	// Transcriptions is POST /v1/audio/transcriptions, a multipart form.
	Transcriptions API = "transcriptions"
	// Invocations is POST /invocations of a SageMaker container, whose body is
	// one of the others', or TGI's {"inputs": …, "parameters": {…}}.
	Invocations API = "invocations"
	// InvocationsStream is POST /invocations-response-stream, the same answered
	// as a stream.
	InvocationsStream API = "invocations-response-stream"
)

// apiPaths are the APIs in the order of their names' listing.
var apiPaths = []struct {
	api  API
	path string
}{
	{Completions, "/v1/completions"},
	{Chat, "/v1/chat/completions"},
	{Responses, "/v1/responses"},
	{Embeddings, "/v1/embeddings"},
	{Rerank, "/v1/rerank"},
	{Transcriptions, "/v1/audio/transcriptions"},
	{Invocations, "/invocations"},
	{InvocationsStream, "/invocations-response-stream"},
}

// APIs lists all APIs.
func APIs() []API {
	list := make([]API, len(apiPaths))
	for i, e := range apiPaths {
		list[i] = e.api
	}
	return list
}

// Path is the API's path under the server's base, "" of one that is not known.
func (a API) Path() string {
	for _, e := range apiPaths {
		if e.api == a {
			return e.path
		}
	}
	return ""
}

// APIAt is the API whose path is the given one, "" where there is none.
func APIAt(path string) API {
	for _, e := range apiPaths {
		if e.path == path {
			return e.api
		}
	}
	return ""
}

// ParseAPI reads the name of an API.
func ParseAPI(name string) (API, error) {
	if API(name).Path() != "" {
		return API(name), nil
	}
	names := make([]string, len(apiPaths))
	for i, e := range apiPaths {
		names[i] = string(e.api)
	}
	return "", fmt.Errorf("api: found %q, want one of %s", name, strings.Join(names, ", "))
}
