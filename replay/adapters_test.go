package replay

import (
	"net/http/httptest"
	"testing"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/simserver"
)

// TestPredictionIsPerAdapter: the simulated server, as vLLM, gives each adapter
// blocks of its own, and the predicted hits are those that it reports.
func TestPredictionIsPerAdapter(t *testing.T) {
	adapters := []string{"ada", "ben"}
	for name, c := range map[string]struct {
		api    openai.API
		change func(*Config)
	}{
		"drawn":          {openai.Completions, func(c *Config) { c.Requests.LoRA = adapters }},
		"from the trace": {openai.Completions, func(c *Config) { c.Requests.ModelFromTrace = true }},
		"chats":          {openai.Chat, func(c *Config) { c.Requests.ModelFromTrace, c.Prompt = true, Text }},
	} {
		t.Run(name, func(t *testing.T) {
			sim, err := simserver.New(simserver.Config{Model: "base", Adapters: adapters, ChatTemplateTokens: 16})
			if err != nil {
				t.Fatal(err)
			}
			defer sim.Close()
			s := httptest.NewServer(sim.Handler())
			defer s.Close()

			reqs := every(0, 12) // the same prompt 12 times, to three models in turn
			for i := range reqs {
				reqs[i].InputTokens, reqs[i].Blocks = 64, []uint64{1, 2, 3, 4}
				reqs[i].Model = []string{"ada", "base", "ben"}[i%3]
			}
			var cfg Config
			_, results := over(t, s.URL, reqs, func(conf *Config) {
				conf.API, conf.Header.BlockSize, conf.ServerBlockSize, conf.MaxConcurrency = c.api, 16, 16, 1
				c.change(conf)
				cfg = *conf
			})
			firsts := 0
			for i, r := range results[:12] { // probes may follow
				if r.State != record.Completed || r.PredictedHit != r.CachedTokens {
					t.Errorf("request %d to %s, %v: predicted %d, the server had %d", i, r.Model, r.State, r.PredictedHit, r.CachedTokens)
				}
				if r.PredictedHit == 0 {
					firsts++
				}
			}
			if firsts < 2 || firsts > 3 {
				t.Errorf("%d requests hit nothing, want the first to each model", firsts)
			}
			if c.api != openai.Completions {
				return // its plan needs to know the server's template
			}
			cfg.Sink = nil
			p, err := Predict(cfg, Target{}, seq(reqs))
			// Of 64 tokens that were sent before, all but the last block of 16 hit.
			if want := int64(12-firsts) * 48; err != nil || p.Hits != want {
				t.Errorf("Predict: %d hits, %v; want %d", p.Hits, err, want)
			}
		})
	}
}
