// Package prefixcache models prefix caches of KV blocks: how many prompt
// tokens of a trace would have been found in a cache of a given size under a
// given policy.
//
// A Sequence holds the prefix blocks of a trace's requests, in the order of
// the trace. A block's identity is its id and the ids of all its predecessors
// in the prompt. The rules, those of the public kvcache-simulator 0.1.3:
//
//   - A hit is the longest run of leading blocks that are in the cache when the
//     request arrives; its tokens are min(run × block size, input tokens).
//   - Then the request's blocks enter. LRU touches them from the last to the
//     first, so that a prefix outlives its leaves; FIFO and Optimal take them
//     from the first to the last.
//   - Optimal is Belady's policy with bypass: a block's next use is the position
//     of its next occurrence in the sequence of all blocks of all requests,
//     never = infinity. The block held with the latest next use is evicted, and
//     a block whose own next use is later than that is not admitted.
//   - The first requests may warm the cache up: they are served like all others,
//     but not counted.
//
// Ideal is the limit: a cache that never evicts. LRU hits of every capacity
// come from one pass, by stack distances (Mattson, Gecsei, Slutz and Traiger,
// "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2),
// 1970): under LRU a block is in a cache of c blocks exactly if fewer than c
// distinct blocks were touched since its own last touch.
//
// LRUReuses tells when and how far back each block was used before, Popularity
// which blocks and prefixes most requests share, and IdealApart what sessions
// would hit alone.
//
// VLLMPool is the block pool of a real engine, for simulated servers. The policy
// VLLM has the same rules for one request at a time, without the engine's
// blocks, and is tested against it.
package prefixcache
