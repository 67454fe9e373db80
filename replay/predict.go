package replay

import (
	"iter"

	"retrace/openai"
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
	// Left counts the requests without a prompt that could be planned.
	Left int64
}

// Predict plans all prompts and sends nothing. Where Config.ServerBlockSize is
// 0 it takes DefaultServerBlockSize. Literal prompts are not predicted.
func Predict(cfg Config, reqs iter.Seq2[record.Request, error]) (Prediction, error) {
	cfg.fill()
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
	e.target.ServerBlockSize = cfg.ServerBlockSize
	if err := e.startPredictor(); err != nil || e.predict == nil {
		return p, err
	}
	for r, err := range reqs {
		if err != nil {
			return p, err
		}
		j := &job{api: openai.Completions, output: r.OutputTokens, res: record.NewResult()}
		if e.planBody(j, &r) != "" {
			p.Left++
			continue
		}
		e.predict.Add(j.prompt)
	}
	p.Hits, p.Tokens = e.predict.Totals()
	return p, nil
}
