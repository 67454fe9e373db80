// Package simserver is a simulated inference server: the OpenAI-compatible
// API of vLLM over a model of its engine, without a model behind it.
//
// What it imitates is what a load generator measures. A continuous-batching
// scheduler with chunked prefill and preemption decides when each token is
// there, in real time; a KV cache with vLLM's prefix rules decides what need
// not be computed; /metrics speaks vLLM's names. docs/simserver.md has the
// model, its formulas and the reasons for the defaults.
//
// What it does not imitate: the text is made of words drawn by a hash of the
// prompt, a token is a white-space separated word, and cost grows linearly
// (the attention of long prompts costs no more than that of short ones).
//
// Two runs of the same requests give the same tokens, and the same faults.
package simserver
