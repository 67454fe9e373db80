package replay

import (
	"hash/fnv"
	"math/rand/v2"

	"retrace/openai"
	"retrace/record"
)

// chooseModel gives a request the model that it asks for beyond the run's: its
// own, or an adapter; nil for none. An adapter is drawn by the run's seed and
// the session, or the request where it has none, so that all shards agree.
func (b *bodies) chooseModel(r *record.Request, seed int64) (name string) {
	c := &b.cfg.Requests
	switch {
	case c.ModelFromTrace:
		return r.Model
	case len(c.LoRA) == 0:
		return ""
	}
	h := fnv.New64a()
	key := "s" + r.Session
	if r.Session == "" {
		key = "r" + r.Key()
	}
	_, _ = h.Write([]byte(key)) // a hash takes all
	draw := rand.New(rand.NewPCG(uint64(seed), h.Sum64()))
	return c.LoRA[draw.IntN(len(c.LoRA))]
}

// modelOf is the JSON string of the model that j asks for; nil leaves a body
// as it is.
func (b *bodies) modelOf(j *job, list []span) []byte {
	if b.cfg.Requests.ModelFromTrace && has(list, "model") {
		return nil
	}
	if j.model != "" {
		return openai.AppendQuoted(nil, j.model)
	}
	return b.model
}
