// Package replay sends the requests of a trace to a server on the trace's own
// schedule, and tells how each of them went.
//
// Run is open loop: a request leaves at its offset from one origin on the
// monotonic clock, whatever the server does. These share the work, each a
// goroutine, with bounded stores between them:
//
//	feeder ──plans──► due ──► pacer ──► senders ──► results ──► Config.Sink
//	                   └────► renderer ──bodies──────┘
//
// The feeder reads the trace and plans prompts, ahead by a bounded number of
// requests and bytes. The renderer turns the plans that are due next into
// bodies, ahead by a bounded number of bytes. The pacer waits for deadlines and
// starts a sender each; nothing else happens in its goroutine. A sender makes
// one HTTP request and watches the answer. A single goroutine hands the results
// to Config.Sink.
//
// The HTTP/1.1 client is the package's own: but for a dial, and a large body
// while it is written, it needs no goroutine beside the sender. Through a
// proxy net/http's takes its place.
//
// # Times
//
// All times of a record.Result are offsets from the schedule's origin on the
// monotonic clock. Sent is the moment when the first byte was written to the
// connection, FirstByte and the moments of outputs are those when the read
// that completed them returned, so that two events of one read have the same
// time. Where a request is made again (see below), Sent is that of the first
// attempt that was written.
//
// # Attempts
//
// A request is sent once, with two exceptions, both of which Result.Attempts
// shows. A connection that had been idle may be closed by the server just as
// the request is written. Where a reused connection gave no byte of a response,
// and either no byte of the request could be written, or it had been idle for
// 0.9 s and broke within a quarter of a second, the request is made once more.
// (Connections are dropped here after 4 s of idleness, before most servers do
// it, and one that is seen closed is not taken, so this is rare.) And where the
// server answers 400 or 422 and names an optional field (stream_options,
// ignore_eos, min_tokens), the field is left out from then on and the request
// is made again.
package replay
