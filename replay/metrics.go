package replay

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"retrace/internal/plural"
	"retrace/record"
)

const (
	defaultMetricsInterval = time.Second
	// scrapeTimeout bounds one scrape while the run goes on, awaitedTimeout those
	// before and after it, for which it waits.
	scrapeTimeout  = 5 * time.Second
	awaitedTimeout = 2 * time.Second
	// settleTime is the time from the end of the last request to the last scrape:
	// an engine adds up its counters after it has sent the last token.
	settleTime = 100 * time.Millisecond
)

// metricsPaths are tried in this order: trtllm-serve has JSON at the first.
var metricsPaths = [...]string{"/metrics", "/prometheus/metrics"}

// errNoMetrics says that a server has no metrics to be scraped.
var errNoMetrics = errors.New("no metrics")

// scraper reads the servers' metrics before, during and after the run, over
// connections of its own: what it waits for delays no request. The nil scraper
// does nothing.
type scraper struct {
	e         *engine
	transport *http.Transport
	places    []*scrapePlace

	emitting sync.Mutex
	pending  []record.Series // from before the start
	started  bool
}

// scrapePlace is the page of metrics of one server.
type scrapePlace struct {
	replica int
	base    string
	message message // to the page that the server has, by the first scrape
	off     bool
	known   bool // it had known metrics
	fetched int64
	failed  int64
	why     error // the first failure, or why it is off
}

// newScraper is nil where nobody wants what it would read.
func newScraper(e *engine) *scraper {
	if e.cfg.Series == nil || e.cfg.MetricsInterval < 0 {
		return nil
	}
	s := &scraper{e: e, transport: &http.Transport{
		DialContext:         e.client.wire.dial,
		TLSClientConfig:     e.client.wire.tls,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 alone
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: scrapeTimeout,
	}}
	if proxy, err := url.Parse(e.cfg.Client.Proxy); err == nil && e.cfg.Client.Proxy != "" {
		s.transport.Proxy = http.ProxyURL(proxy)
	}
	for i := range e.client.servers {
		s.places = append(s.places, &scrapePlace{replica: i, base: e.client.servers[i].base})
	}
	return s
}

// before is the scrape before the run; it waits for all servers, and, where
// they have been busy, for their counters.
func (s *scraper) before(ctx context.Context, busy bool) {
	if s == nil {
		return
	}
	if busy {
		time.Sleep(settleTime)
	}
	s.each(func(p *scrapePlace) { s.first(ctx, p) })
}

// settleOrigin moves the moments of before to the origin that was chosen since.
func (s *scraper) settleOrigin(by time.Duration) {
	if s == nil {
		return
	}
	for i := range s.pending {
		s.pending[i].Times[0] -= by
	}
}

// watch scrapes until over is closed, and once after.
func (s *scraper) watch(ctx context.Context, over <-chan struct{}) {
	if s == nil {
		return
	}
	s.release()
	ctx = context.WithoutCancel(ctx) // a run that is interrupted has an end too
	s.each(func(p *scrapePlace) {
		tick := time.NewTicker(s.e.cfg.MetricsInterval)
		defer tick.Stop()
		for !p.off {
			select {
			case <-tick.C:
				s.scrape(ctx, p, scrapeTimeout, over)
				continue
			case <-over:
			}
			time.Sleep(settleTime)
			s.scrape(ctx, p, awaitedTimeout, nil)
			return
		}
	})
}

// each runs f for all servers at once that are not off.
func (s *scraper) each(f func(*scrapePlace)) {
	var all sync.WaitGroup
	for _, p := range s.places {
		if !p.off {
			all.Go(func() { f(p) })
		}
	}
	all.Wait()
}

// release hands over what came before the start.
func (s *scraper) release() {
	s.emitting.Lock()
	list := s.pending
	s.pending, s.started = nil, true
	s.emitting.Unlock()
	s.emit(list)
}

func (s *scraper) emit(list []record.Series) {
	s.emitting.Lock()
	defer s.emitting.Unlock()
	if !s.started {
		s.pending = append(s.pending, list...)
		return
	}
	for i := range list {
		if err := s.e.cfg.Series(&list[i]); err != nil {
			s.e.fail(err, reasonSink)
			return
		}
	}
}

// first finds the page of a server. One that has none is not asked again; one
// that does not answer yet is.
func (s *scraper) first(ctx context.Context, p *scrapePlace) {
	var page message
	var why error
	for _, path := range metricsPaths {
		u, err := endpoint(p.base, path)
		if err != nil {
			p.off, p.why = true, err
			return
		}
		header := s.e.client.header.Clone()
		header.Del("Content-Type")
		header.Set("Accept", "text/plain;version=0.0.4, */*;q=0.1")
		p.message, p.off = newMessage(http.MethodGet, u, header), false
		s.scrape(ctx, p, awaitedTimeout, nil)
		if !p.off {
			return
		}
		if why == nil {
			page, why = p.message, p.why
		}
		if !errors.Is(p.why, errNoMetrics) {
			break
		}
	}
	p.message, p.why = page, why
}

// scrape reads a page once. A scrape that over cuts is none.
func (s *scraper) scrape(ctx context.Context, p *scrapePlace, limit time.Duration, over <-chan struct{}) {
	ctx, done := context.WithTimeout(ctx, limit)
	defer done()
	if over != nil {
		end := make(chan struct{})
		defer close(end)
		go func() {
			select {
			case <-over:
				done()
			case <-end:
			}
		}()
	}
	at, list, err := s.fetch(ctx, p.message)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no whole page within %v", limit)
	}
	switch {
	case err == nil:
		p.fetched++
		p.known = p.known || len(list) > 0
		s.emit(s.series(p.replica, at, list))
	case closed(over):
	case p.fetched == 0 && errors.Is(err, errNoMetrics), errors.Is(err, errPageTooLarge), errors.Is(err, errManySamples):
		p.off, p.why = true, err
	default:
		if p.failed++; p.failed == 1 {
			p.why = err
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// fetch gets a page; at is when its first byte was there.
func (s *scraper) fetch(ctx context.Context, m message) (at time.Duration, list []sample, err error) {
	req := &http.Request{Method: m.method, URL: m.to, Host: m.header.Get("Host"), Header: m.header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	resp, err := s.transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return 0, nil, maskURLError(err)
	}
	defer resp.Body.Close() // read as far as wanted
	at = s.e.clock.now()
	if code := resp.StatusCode; code != http.StatusOK {
		err := fmt.Errorf("HTTP %d", code)
		if code < 500 && code != http.StatusTooManyRequests {
			err = fmt.Errorf("%w: %w", errNoMetrics, err)
		}
		return at, nil, err
	}
	var body io.Reader = resp.Body
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		if body, err = gzip.NewReader(resp.Body); err != nil {
			return at, nil, fmt.Errorf("decode gzip: %w", err)
		}
	default:
		return at, nil, fmt.Errorf("%w: content encoding %.20q", errNoMetrics, encoding)
	}
	list, err = readMetrics(body)
	if errors.Is(err, errNoPage) {
		err = fmt.Errorf("%w: %w", errNoMetrics, err)
	}
	return at, list, err
}

// series are the figures of one scrape of one server.
func (s *scraper) series(replica int, at time.Duration, list []sample) []record.Series {
	out := make([]record.Series, 0, len(list))
	for _, v := range list {
		for name, value := range v.labels {
			v.labels[name] = s.e.scrub.clean(value)
		}
		if theirs, found := v.labels[record.ReplicaLabel]; found {
			v.labels["exported_"+record.ReplicaLabel] = theirs // as Prometheus does
		}
		v.labels[record.ReplicaLabel] = strconv.Itoa(replica)
		out = append(out, record.Series{Name: v.name, Labels: v.labels, Times: []time.Duration{at}, Values: []float64{v.value}})
	}
	return out
}

// notes say what was not to be had.
func (s *scraper) notes() (list []string) {
	if s == nil {
		return nil
	}
	for _, p := range s.places {
		page := MaskURL(p.base)
		if p.message.to != nil {
			page = maskURL(p.message.to)
		}
		why := ""
		if p.why != nil {
			why = s.e.scrub.clean(p.why.Error())
		}
		switch {
		case p.off:
			list = append(list, fmt.Sprintf("server metrics of %s: not scraped: %s", page, why))
		case p.failed > 0:
			list = append(list, fmt.Sprintf("server metrics of %s: %d of %s failed, the first: %s", page, p.failed, plural.Of(p.failed+p.fetched, "scrape"), why))
		case p.fetched > 0 && !p.known:
			list = append(list, fmt.Sprintf("server metrics of %s: none of the names are known", page))
		}
	}
	return list
}

func (s *scraper) close() {
	if s != nil {
		s.transport.CloseIdleConnections()
	}
}
