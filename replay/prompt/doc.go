// Package prompt makes prompts from the prefix blocks of a trace, and predicts
// which part of each a server's prefix cache can give back.
//
// A prompt is planned first and rendered later. A Planner turns requests, in
// the order of the trace, into Prompts: short lists of segments that say which
// block stands where and for how many tokens. A Maker renders a Prompt as
// token ids or as text, from nothing but the trace's namespace, a salt, the
// block size and the segments; so every process on every machine renders the
// same bytes, in whatever order it gets to them. A Predictor takes the Prompts
// in the order of sending and tells how many tokens of each were sent before.
//
// What two prompts share is what their block chains share. docs/prompts.md
// has the scheme, a worked example and the odds of the exceptions.
package prompt
