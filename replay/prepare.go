package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"retrace/record"
	"retrace/replay/prompt"
)

const (
	// readyEvery is the time between two looks at a server that is not there yet.
	readyEvery = 250 * time.Millisecond
	// getTimeout bounds each request that is not for generation.
	getTimeout = 5 * time.Second
)

// prepare waits for the servers and learns what is to be known of them. The
// result is that of the overhead probe, nil where there was none.
func (e *engine) prepare(ctx context.Context) (*record.Result, error) {
	t := &e.target
	for _, s := range e.client.servers {
		t.URLs = append(t.URLs, MaskURL(s.base))
	}
	t.Proxy, t.Model, t.ServerBlockSize = e.client.proxy, e.cfg.Model, e.cfg.ServerBlockSize
	e.awaitAll(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("wait for server: %w", ctx.Err())
	}
	var probe *record.Result
	if len(e.ready) > 0 {
		e.learn(ctx, &e.client.servers[e.ready[0]])
		probe = e.learnOverhead(ctx)
	} else if e.cfg.makesText() {
		e.remark("no server is ready: the template's overhead is unknown, prompts are not cut")
	}
	e.addresses()
	return probe, e.startPredictor()
}

func (e *engine) remark(format string, args ...any) {
	e.target.Notes = append(e.target.Notes, fmt.Sprintf(format, args...))
}

// awaitAll waits for all servers at once and keeps which are ready.
func (e *engine) awaitAll(ctx context.Context) {
	errs := make([]error, len(e.client.servers))
	var all sync.WaitGroup
	for i := range e.client.servers {
		all.Go(func() { errs[i] = e.await(ctx, &e.client.servers[i]) })
	}
	all.Wait()
	for i, err := range errs {
		if err == nil {
			e.ready = append(e.ready, i)
			continue
		}
		but := ""
		if e.cfg.Load.WarmUp > 0 {
			but = ", but for the warm-up"
		}
		e.remark("server %s is not ready: %v; sending all the same%s", e.target.URLs[i], e.scrub.clean(err.Error()), but)
	}
}

// learn asks a server for the model and the block size where they were not given.
func (e *engine) learn(ctx context.Context, s *server) {
	t := &e.target
	e.learnModel(ctx, s)
	if t.ServerBlockSize == 0 && e.cfg.Prompt != Literal {
		t.ServerBlockSize = e.blockSize(ctx, s)
	}
}

// await returns when the server answers, or with why it does not.
func (e *engine) await(ctx context.Context, s *server) error {
	if e.cfg.ReadyTimeout > 0 { // elsewise one look is all
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, e.cfg.ReadyTimeout)
		defer done()
	}
	var last error
	for {
		err := e.isReady(ctx, s)
		if last != nil && ctx.Err() != nil {
			return last // what cuts the last look says less
		}
		var wait *notReadyError
		if err == nil || !errors.As(err, &wait) || ctx.Err() != nil || e.cfg.ReadyTimeout <= 0 {
			return err
		}
		last = err
		select {
		case <-time.After(readyEvery):
		case <-ctx.Done():
		}
	}
}

// notReadyError wraps what may pass while a server starts.
type notReadyError struct{ error }

// Unwrap is errors.Unwrap's.
func (n *notReadyError) Unwrap() error { return n.error }

func (e *engine) isReady(ctx context.Context, s *server) error {
	code, _, err := e.get(ctx, s, "/health", 1<<10)
	if err == nil && code == http.StatusNotFound {
		code, _, err = e.get(ctx, s, "/v1/models", 1<<10)
	}
	switch {
	case err != nil:
		return err
	case code >= 500:
		return &notReadyError{fmt.Errorf("HTTP %d", code)}
	}
	return nil // it answers, whatever it says
}

// get makes a request that is not for generation.
func (e *engine) get(ctx context.Context, s *server, path string, most int64) (code int, body []byte, err error) {
	u, err := endpoint(s.base, path)
	if err != nil {
		return 0, nil, err
	}
	a := &attempt{clock: e.clock}
	began := time.Now()
	ctx, done := context.WithTimeout(ctx, getTimeout)
	defer done()
	header := e.client.header.Clone()
	header.Del("Content-Type")
	header.Set("Accept", "*/*")
	resp, err := e.client.do(ctx, a, newMessage(http.MethodGet, u, header))
	if err != nil {
		class := a.classify(err)
		err = fmt.Errorf("%s: %w", class, err)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("GET %s: no answer within %v", path, time.Since(began).Round(10*time.Millisecond))
		}
		if class == record.ClassConnect || class == record.ClassTruncated {
			err = &notReadyError{err}
		}
		return 0, nil, err
	}
	defer resp.Body.Close()                                   // read as far as wanted
	body, err = io.ReadAll(io.LimitReader(resp.Body, most+1)) // one more, to meet the end
	return resp.StatusCode, body, err
}

// listed is a model as the server lists it.
type listed struct {
	ID string `json:"id"`
	// MaxLen is vLLM's: the model's context in tokens, 0 where not told.
	MaxLen int64 `json:"max_model_len"`
}

func (e *engine) models(ctx context.Context, s *server) ([]listed, error) {
	code, body, err := e.get(ctx, s, "/v1/models", 1<<20)
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("GET /v1/models: HTTP %d", code)
	}
	var list struct {
		Data []listed `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("GET /v1/models: %w", err)
	}
	if len(list.Data) == 0 {
		return nil, errors.New("GET /v1/models: found no model")
	}
	return list.Data, nil
}

// learnModel asks for the model's name and context, where these were not given
// and are needed.
func (e *engine) learnModel(ctx context.Context, s *server) {
	t := &e.target
	t.ContextLimit = e.cfg.Requests.ContextLimit
	limited := e.cfg.Requests.OverContext != ContextSend && t.ContextLimit == 0
	if t.Model != "" && !limited {
		return
	}
	list, err := e.models(ctx, s)
	if err != nil && t.Model == "" {
		e.remark("no model is named: %v; requests go without one", e.scrub.clean(err.Error()))
	}
	if err == nil && t.Model == "" {
		e.cfg.Model = list[0].ID
		t.Model = e.scrub.clean(e.cfg.Model)
		e.bodies.setModel(e.cfg.Model)
	}
	for _, m := range list {
		if limited && m.ID == e.cfg.Model {
			t.ContextLimit = m.MaxLen
		}
	}
	if limited && t.ContextLimit <= 0 {
		e.remark("the server does not tell its context: --over-context does nothing without --context-limit")
	}
}

// vLLM's name for its configuration; the labels' order is not fixed.
var cacheConfig = regexp.MustCompile(`(?m)^vllm:cache_config_info\{[^}]*\bblock_size="(\d+)"`)

// blockSize is the server's prefix block, 0 where it does not tell.
func (e *engine) blockSize(ctx context.Context, s *server) int {
	code, body, err := e.get(ctx, s, "/metrics", 16<<20)
	if err != nil || code != http.StatusOK {
		return 0
	}
	m := cacheConfig.FindSubmatch(body)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return 0
	}
	return n
}

// addresses notes what the names stood for.
func (e *engine) addresses() {
	n := e.client.names
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, entry := range n.known {
		select {
		case <-entry.known:
			e.target.Addresses = append(e.target.Addresses, entry.addrs...)
		default: // the resolver has not answered
		}
	}
	slices.Sort(e.target.Addresses)
}

func (e *engine) startPredictor() error {
	if e.target.ServerBlockSize <= 0 || e.cfg.Prompt == Literal || !PredictsHits(e.cfg.API) {
		return nil
	}
	for range e.client.servers { // each has a cache of its own
		p, err := prompt.NewPredictor(prompt.PredictorConfig{
			Maker: e.bodies.maker, Text: e.cfg.Prompt == Text, BlockSize: e.target.ServerBlockSize,
			Head: int(e.target.Overhead - e.target.Tail), Overhead: int(e.target.Overhead),
		})
		if err != nil {
			return err
		}
		e.predict = append(e.predict, p)
	}
	return nil
}

// predictHit is what the server's cache can have of a prompt. An adapter's
// blocks, and those of another model, are its own.
func (e *engine) predictHit(j *job) int64 {
	other := j.model
	if other == e.cfg.Model {
		other = ""
	}
	return e.predict[e.replica(j)].AddFor(other, j.prompt)
}

// shift moves a result's times, which were taken before the origin was chosen.
func shift(res *record.Result, by time.Duration) {
	for _, t := range []*time.Duration{
		&res.Scheduled, &res.Granted, &res.Sent, &res.FirstByte, &res.FirstOutput, &res.FirstContent, &res.LastOutput, &res.End,
	} {
		if *t != record.NoTime {
			*t -= by
		}
	}
}
