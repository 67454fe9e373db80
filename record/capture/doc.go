// Package capture decides what of real traffic may stand in a trace.
//
// In the mode lengths nothing is kept of a request but its shape; in the mode
// blocks, the default, also the structure that prompts share, as blocks hashed
// under a secret salt and then renumbered; in the mode full everything. The
// names of sessions, users, requests and cache keys are hashed under the salt in
// all modes but full.
//
// What someone may learn who can send requests of his own into the same file:
// whether another prompt of the file begins as his does, block by block. Without
// that he learns lengths, times and which prompts share how much, but no text:
// the numbers in the file say only in which order the blocks came first.
package capture
