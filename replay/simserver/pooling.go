package simserver

import (
	"cmp"
	"math"
	"net/http"
	"slices"

	"retrace/openai"
)

// The lengths of an embedding: without a wish, and at most.
const (
	defaultDimensions = 256
	maxDimensions     = 4096
)

// maxVectors bounds the numbers in one answer.
const maxVectors = 1 << 24

func (s *Server) prepareEmbeddings(g *generation) *apiError {
	e := &g.embedding
	if len(e.Inputs) == 0 {
		return badRequest("You must pass at least one input")
	}
	if e.Dimensions == openai.Unset {
		e.Dimensions = defaultDimensions
	}
	if e.Dimensions < 1 || e.Dimensions > maxDimensions {
		return badRequest("dimensions must be from 1 to %d, got %d.", maxDimensions, e.Dimensions)
	}
	if int64(len(e.Inputs))*e.Dimensions > maxVectors {
		return badRequest("inputs times dimensions must be at most %d", maxVectors)
	}
	g.pool()
	return s.addPrompts(g, e.Inputs)
}

// pool makes a request one of which only the prompts are computed.
func (g *generation) pool() {
	g.plan.pooled = true
	g.params.N, g.params.ReturnTokenIDs = 1, false
}

// answerEmbeddings gives the embeddings: numbers from -1 to 1 by a hash of the
// prompt, scaled to a vector of length 1.
func (s *Server) answerEmbeddings(w http.ResponseWriter, r *http.Request, g *generation) {
	if !s.awaitAll(r, g) {
		return
	}
	n := int(g.embedding.Dimensions)
	vectors := make([][]float32, len(g.call.seqs))
	for i, q := range g.call.seqs {
		vectors[i] = embedding(q.seed, n)
	}
	u := g.usage()
	write := openai.EmbeddingsWriter{ID: g.id, Model: g.model, Created: g.created, Base64: g.embedding.Base64}
	g.out = write.Append(g.out[:0], vectors, &u)
	s.send(w, r, g, contentJSON)
}

// embedding is the unit vector of a seed.
func embedding(seed uint64, n int) []float32 {
	v := make([]float32, n)
	sum := 0.0
	for i := range v {
		x := 2*float64(mix(seed, i)>>11)/(1<<53) - 1
		v[i] = float32(x)
		sum += x * x
	}
	length := float32(math.Sqrt(max(sum, math.SmallestNonzeroFloat32)))
	for i := range v {
		v[i] /= length
	}
	return v
}

func (s *Server) prepareRanking(g *generation) *apiError {
	q := &g.rerank
	if len(q.Documents) == 0 {
		return badRequest("You must pass at least one document")
	}
	if len(q.Documents) > maxChoices {
		return badRequest("documents must be at most %d, got %d", maxChoices, len(q.Documents))
	}
	g.pool()
	g.prompts = len(q.Documents)
	head := s.tok.append(s.tok.head(nil, s.cfg.BOSTokens), q.Query)
	for _, document := range q.Documents {
		g.tokens = s.tok.append(append(g.tokens[:0], head...), document)
		if fail := s.addPrompt(g, g.tokens); fail != nil {
			return fail
		}
	}
	return nil
}

// answerRanking gives the documents by falling score: a hash of query and
// document, from 0 to 1.
func (s *Server) answerRanking(w http.ResponseWriter, r *http.Request, g *generation) {
	if !s.awaitAll(r, g) {
		return
	}
	results := make([]openai.Ranked, len(g.call.seqs))
	for i, q := range g.call.seqs {
		results[i] = openai.Ranked{Index: i, Text: g.rerank.Documents[i], Score: float64(mix(q.seed, 0)>>11) / (1 << 53)}
	}
	slices.SortStableFunc(results, func(a, b openai.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	if n := g.rerank.TopN; n > 0 && n < int64(len(results)) {
		results = results[:n]
	}
	u := g.usage()
	g.out = openai.AppendRanking(g.out[:0], g.id, g.model, results, &u)
	s.send(w, r, g, contentJSON)
}
