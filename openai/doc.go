// Package openai is the wire of OpenAI-compatible servers: the shapes of
// requests, responses and usage, and the reader of streamed answers. Client
// and server both use it, so that they mean the same.
//
// Requests: ParseCompletion and ParseChat read a body, fast for prompts of
// token ids; an error says which field, at which byte, what was found and what
// was expected. Responses: a ResponseWriter renders events and whole answers
// as vLLM does. Streams: an EventReader splits server-sent events, a Stream
// adds up what their chunks bring.
package openai
