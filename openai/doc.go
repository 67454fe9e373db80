// Package openai is the wire of OpenAI-compatible servers: the shapes of
// requests, responses and usage of every API, and the reader of streamed
// answers. Client and server both use it, so that they mean the same.
//
// APIs: an API names an endpoint and its path. Requests: ParseCompletion,
// ParseChat, ParseResponses and the like read a body, fast for prompts of token
// ids; an error says which field, at which byte, what was found and what was
// expected; InvocationShape tells which API a body is of. Responses: a
// ResponseWriter renders events and whole answers as vLLM does, other writers
// those of the other APIs.
//
// Streams: an EventReader splits server-sent events, or JSON lines; an
// EventStreamReader takes AWS's binary frames off them; a Stream adds up what
// the events bring, whichever API's they are, and gives the verdict on the
// answer. Text, reasoning and tool calls are outputs; roles, pings and usage
// are not. Reading a usual event takes about 0.9 µs and no allocation.
package openai
