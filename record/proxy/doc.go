// Package proxy is a reverse proxy that stands before an OpenAI-compatible
// server and writes the generation requests that pass as a trace.
//
// Bytes pass unchanged in both directions and are flushed as they come; a copy
// of them is recorded. What costs time (hashing, encoding, the disk) happens
// behind a bounded queue: where that is full, records are dropped and counted,
// never requests. An answer's copy is read while it passes, by a coroutine that
// runs once the bytes it reads are on their way to the client, so that nothing
// of a long stream is kept.
//
// A trace holds what Config.Capture says: lengths, prefix blocks as keyed
// hashes, or bodies. docs/record.md has all of it for users.
package proxy
