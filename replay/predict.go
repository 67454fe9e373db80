package replay

import (
	"iter"

	"retrace/record"
)

// DefaultServerBlockSize is vLLM's prefix block in tokens, taken where no
// server is asked.
const DefaultServerBlockSize = 16

// Prediction is what a server's prefix cache can give a trace.
type Prediction struct {
	// Hits of Tokens prompt tokens, with server blocks of BlockSize tokens.
	Hits, Tokens int64
	BlockSize    int
	// Left counts the requests that will not be sent, by reason.
	Left map[string]int64
	// Orphans counts the increments whose earlier turn is not in the plan:
	// their prompts are the new part alone.
	Orphans int64
}

// Predict plans all prompts and sends nothing. Of the target, which is zero
// where no server was asked, it takes the overhead, the vocabulary and, where
// Config.ServerBlockSize is 0, the block size, else DefaultServerBlockSize.
// Literal prompts are not predicted.
func Predict(cfg Config, t Target, reqs iter.Seq2[record.Request, error]) (Prediction, error) {
	cfg.fill()
	setDefault(&cfg.Model, t.Model)
	setDefault(&cfg.ServerBlockSize, t.ServerBlockSize)
	setDefault(&cfg.ServerBlockSize, DefaultServerBlockSize)
	p := Prediction{BlockSize: cfg.ServerBlockSize}
	if len(cfg.URLs) == 0 {
		cfg.URLs = []string{"http://localhost"}
	}
	e, err := newEngine(cfg)
	if err != nil {
		return p, err
	}
	defer e.close()
	e.target.ContextLimit = t.ContextLimit
	setDefault(&e.target.ContextLimit, cfg.Requests.ContextLimit)
	e.target.ServerBlockSize, e.target.Overhead, e.target.Tail = cfg.ServerBlockSize, t.Overhead, t.Tail
	if t.Vocabulary.Digest() != "" {
		if err := e.useVocabulary(t.Vocabulary); err != nil {
			return p, err
		}
	}
	if err := e.startPredictor(); err != nil {
		return p, err
	}
	p.Left = map[string]int64{}
	for r, err := range e.lineUp(reqs) {
		if err != nil {
			return p, err
		}
		if r.other {
			e.foresee(&r)
			continue
		}
		j := &job{seq: r.index, api: cfg.API, output: r.OutputTokens, res: record.NewResult()}
		switch why := e.planBody(j, &r.Request); {
		case why != "":
			p.Left[why]++
		case e.predict != nil && j.source == nil:
			p.Hits += e.predictHit(j)
			p.Tokens += int64(j.prompt.Tokens()) + e.target.Overhead
		}
	}
	p.Orphans = e.planner.Orphans()
	return p, nil
}
