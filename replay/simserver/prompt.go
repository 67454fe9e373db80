package simserver

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"retrace/hashing"
	"retrace/openai"
)

// maxAnswerTokens bounds what one request may ask for, in tokens of all its
// answers together, and what their ids and texts may take in memory with it.
const maxAnswerTokens = 1 << 24

// checkParams checks the fields that all APIs share, with vLLM's words.
func checkParams(p *openai.Params) *apiError {
	if fail := checkSampling(&p.Sampling); fail != nil {
		return fail
	}
	switch {
	case p.MaxTokens == 0:
		return badRequest("max_tokens must be at least 1, got 0.")
	case p.MaxTokens != openai.Unset && p.MinTokens > p.MaxTokens:
		return badRequest("min_tokens must be less than or equal to max_tokens=%d, got %d.", p.MaxTokens, p.MinTokens)
	case p.N < 1 || p.N > maxChoices:
		return badRequest("n must be from 1 to %d, got %d.", maxChoices, p.N)
	case p.N > 1 && p.Sampling.Temperature < 1e-5:
		return badRequest("n must be 1 when using greedy sampling, got %d.", p.N)
	case p.Thinking.Budget < openai.Unset:
		return badRequest("`thinking_token_budget` must be a non-negative integer or -1 for unlimited.")
	case (p.IncludeUsage || p.ContinuousUsage) && !p.Stream:
		return badRequest("Stream options can only be defined when `stream=True`.")
	}
	return nil
}

// checkSampling checks the ranges that vLLM's SamplingParams allow.
func checkSampling(p *openai.Sampling) *apiError {
	for _, c := range [...]struct {
		ok    bool
		says  string
		value float64
	}{
		{p.PresencePenalty >= -2 && p.PresencePenalty <= 2, "presence_penalty must be in [-2, 2]", p.PresencePenalty},
		{p.FrequencyPenalty >= -2 && p.FrequencyPenalty <= 2, "frequency_penalty must be in [-2, 2]", p.FrequencyPenalty},
		{p.RepetitionPenalty > 0, "repetition_penalty must be greater than zero", p.RepetitionPenalty},
		{p.Temperature >= 0, "temperature must be non-negative", p.Temperature},
		{p.Temperature <= 2, "temperature must be in [0, 2]", p.Temperature},
		{p.TopP > 0 && p.TopP <= 1, "top_p must be in (0, 1]", p.TopP},
		{p.MinP >= 0 && p.MinP <= 1, "min_p must be in [0, 1]", p.MinP},
	} {
		if !c.ok {
			return badRequest("%s, got %s.", c.says, appendFloat(nil, c.value))
		}
	}
	if p.TopK < -1 {
		return badRequest("top_k must be 0 (disable), or at least 1, got %d.", p.TopK)
	}
	return nil
}

// checkTokens finds an id that is no token.
func (s *Server) checkTokens(tokens []uint32) *apiError {
	for _, id := range tokens {
		if id >= s.tok.vocab {
			return badRequest("Token id %d is out of vocabulary", id)
		}
	}
	return nil
}

// addPrompt adds the sequences of one prompt to the call.
func (s *Server) addPrompt(g *generation, tokens []uint32) *apiError {
	maxTokens, target, finish, fail := s.outputLength(g, len(tokens))
	if fail != nil {
		return fail
	}
	n := int(g.params.N)
	if g.plan.total += n * max(target, boolInt(g.params.ReturnTokenIDs)*len(tokens)); g.plan.total > maxAnswerTokens {
		return badRequest("the answers to a request may have %d tokens together", maxAnswerTokens)
	}
	if len(g.call.seqs)+n > maxChoices {
		return badRequest("a request may have at most %d sequences", maxChoices)
	}
	p := s.hashPrompt(g, tokens, target)
	var ids []uint32
	if g.params.ReturnTokenIDs {
		ids = append([]uint32{}, tokens...)
	}
	now := time.Now()
	for i := range n {
		q := &sequence{call: g.call, index: len(g.call.seqs), promptLen: len(tokens), target: target,
			maxTokens: maxTokens, choices: n, finish: finish, textLen: -1, seed: p.seed + uint64(i)*0xd1342543de82ef95,
			hashes: p.hashes, chain: p.chain, promptIDs: ids, priority: g.params.Priority,
			tailKeys: p.tail, keyed: p.keyed}
		if i > 0 {
			q.hashes = p.hashes[:len(p.hashes):len(p.hashes)] // copied when it grows
			q.chain = s.engine.chain()
			q.chain.CopyFrom(p.chain)
		}
		q.times.arrived = now
		q.cached.Store(-1)
		g.call.seqs = append(g.call.seqs, q)
		if fail := s.shape(g, q); fail != nil {
			return fail
		}
	}
	return nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hashed is a prompt with its block hashes.
type hashed struct {
	hashes []uint64
	chain  *hashing.Chain
	seed   uint64 // of the outputs
	tail   []any  // extra keys of the blocks behind the prompt's last
	keyed  bool   // the open block has other extra keys than that
}

// hashPrompt hashes a prompt's full blocks under vLLM's extra keys: the
// adapter's name in every block, the digest and the place of each medium in the
// blocks that hold its placeholders, the salt in the first.
func (s *Server) hashPrompt(g *generation, tokens []uint32, target int) hashed {
	p := hashed{chain: s.engine.chain(), hashes: make([]uint64, 0, (len(tokens)+min(target, 1024))/s.cfg.BlockSize+1)}
	if g.adapter != "" {
		p.tail = []any{[]any{"lora", g.adapter, g.adapter}}
	}
	if g.params.CacheSalt == "" && len(g.media) == 0 && p.tail == nil {
		p.hashes = p.chain.Append(p.hashes, tokens)
	} else {
		for at := 0; at < len(tokens); at += s.cfg.BlockSize {
			end := min(at+s.cfg.BlockSize, len(tokens))
			keys := g.blockKeys(p.tail, at, at+s.cfg.BlockSize)
			_ = p.chain.SetExtra(keys...) // strings and small integers can be hashed
			p.keyed = len(keys) != len(p.tail)
			p.hashes = p.chain.Append(p.hashes, tokens[at:end])
		}
		if p.chain.Pending() == 0 {
			_ = p.chain.SetExtra(p.tail...)
			p.keyed = false
		}
	}
	seed := p.chain.Event()
	for _, id := range tokens[len(tokens)-p.chain.Pending():] {
		seed = (seed ^ uint64(id)) * 0x9e3779b97f4a7c15
	}
	if g.adapter != "" {
		seed ^= xxhash.Sum64String(g.adapter)
	}
	for i := range g.media {
		seed = (seed ^ xxhash.Sum64String(g.media[i].digest)) * 0x9e3779b97f4a7c15
	}
	p.seed = seed
	return p
}

// blockKeys are the extra keys of the block of the tokens from one to another.
func (g *generation) blockKeys(lora []any, from, to int) []any {
	keys := append([]any(nil), lora...)
	for i := range g.media {
		if m := &g.media[i]; m.from < to && m.to > from {
			keys = append(keys, []any{"mm", m.digest, m.from - from})
		}
	}
	if from == 0 && g.params.CacheSalt != "" {
		keys = append(keys, []any{"cache_salt", g.params.CacheSalt})
	}
	return keys
}

// outputLength finds how many tokens the answers to a prompt of n tokens may
// have, how many they will have, and why they end there.
func (s *Server) outputLength(g *generation, n int) (maxTokens, target int, finish string, fail *apiError) {
	p := g.params
	room := s.cfg.MaxModelLen - n
	switch {
	case n == 0:
		return 0, 0, "", badRequest("The decoder prompt cannot be empty")
	case room < 1:
		return 0, 0, "", badRequest("This model's maximum context length is %d tokens. However, your prompt contains %d input tokens. "+
			"Please reduce the length of the input prompt.", s.cfg.MaxModelLen, n)
	case g.plan.pooled:
		return 1, 1, finishStop, nil
	case p.MaxTokens > int64(room) && g.api == openai.Responses:
		return room, room, finishLength, nil // vLLM takes what there is
	case p.MaxTokens != openai.Unset && p.MaxTokens > int64(room):
		return 0, 0, "", badRequest("This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains "+
			"%d input tokens, for a total of %d tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
			s.cfg.MaxModelLen, p.MaxTokens, n, p.MaxTokens+int64(n))
	case g.plan.natural > 0:
		return s.naturalLength(g, room)
	case p.MaxTokens != openai.Unset:
		return int(p.MaxTokens), int(p.MaxTokens), finishLength, nil
	case g.api == openai.Completions || g.api == openai.Invocations:
		m := min(max(defaultMaxTokens, int(min(p.MinTokens, int64(room)))), room)
		return m, m, finishLength, nil
	}
	target = max(s.cfg.AnswerTokens+g.plan.lead, int(min(p.MinTokens, int64(room))))
	if p.IgnoreEOS || target >= room {
		return room, room, finishLength, nil
	}
	return room, target, finishStop, nil
}

// naturalLength is outputLength where the answer has an end of its own.
func (s *Server) naturalLength(g *generation, room int) (maxTokens, target int, finish string, fail *apiError) {
	maxTokens = room
	if g.params.MaxTokens != openai.Unset {
		maxTokens = int(g.params.MaxTokens)
	}
	target = g.plan.natural
	if least := int(min(g.params.MinTokens, int64(room))); target < least {
		target = least
	}
	if g.params.IgnoreEOS || target > maxTokens {
		return maxTokens, maxTokens, finishLength, nil
	}
	return maxTokens, target, finishStop, nil
}
