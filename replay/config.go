package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

// PromptMode says what prompts are made of.
type PromptMode string

// The modes of prompts.
const (
	Tokens  PromptMode = "tokens"  // token ids spelt from prefix blocks; completions only
	Text    PromptMode = "text"    // words spelt from prefix blocks
	Literal PromptMode = "literal" // the trace's own bodies, as they are
)

// SessionMode says when the later turns of a session leave.
type SessionMode string

// The modes of sessions.
const (
	// Open sends each turn at its own time; a turn that has only a delay
	// still waits for its parent.
	Open SessionMode = "open"
	// Closed sends a turn at its parent's end plus its delay; where it has
	// none, at the later of its own time and its parent's end.
	Closed SessionMode = "closed"
)

// ZeroPolicy says what becomes of a request that failed at its source, or
// asks for no output.
type ZeroPolicy string

// The policies of --zero-output.
const (
	ZeroOne        ZeroPolicy = "one"         // sent, with at least one token in and out
	ZeroSkip       ZeroPolicy = "skip"        // not sent
	ZeroAsRecorded ZeroPolicy = "as-recorded" // sent with max_tokens 0
)

// Config describes a run. Zero values stand for the defaults that the fields
// name.
type Config struct {
	// URLs are the servers' bases; requests take turns. At least one.
	URLs []string
	// API is the endpoint of generated prompts; default completions.
	API openai.API
	// Model is sent as "model"; "" takes the first that the server lists.
	Model string
	// Prompt is the kind of prompts; default tokens for completions, text for chat.
	Prompt PromptMode
	// Header is the trace's header.
	Header record.Header
	// Salt, VocabLo and VocabHi shape prompts; see package prompt.
	Salt             string
	VocabLo, VocabHi uint32
	Prompts          PromptConfig
	// ServerBlockSize is the server's prefix block in tokens, for predicted
	// hits; 0 asks the server's /metrics.
	ServerBlockSize int

	// Placing replaces the trace's arrivals; Seed is that of whatever is drawn.
	Placing Placing
	Seed    int64
	// Speed divides arrivals and delays; default 1.
	Speed float64
	// Sessions is the mode of sessions; default Open.
	Sessions SessionMode
	// StartAt is the wall-clock time of the schedule's origin; zero starts at once.
	StartAt time.Time

	// MaxConcurrency bounds the requests that are being served, 0 not at all:
	// others wait in line. MaxInFlight bounds those served and waiting
	// together; beyond it requests are not sent. Default 16384.
	MaxConcurrency int
	MaxInFlight    int
	// Load is the rest of the load: policies, warm-up, probes, retries.
	Load Load
	// Timeout bounds one request from its send to its end, default 10 min;
	// MaxDuration the sending from the origin, 0 not at all; Grace what
	// remains in flight after sending was stopped, default 30 s; ReadyTimeout
	// the wait for a server that cannot be reached yet, default 10 s. Negative
	// ones are none.
	Timeout      time.Duration
	MaxDuration  time.Duration
	Grace        time.Duration
	ReadyTimeout time.Duration

	// IgnoreEOS asks for answers of exactly the wanted length. MaxInputTokens
	// and MaxOutputTokens cap lengths, 0 not at all.
	IgnoreEOS       bool
	MaxInputTokens  int64
	MaxOutputTokens int64
	// ZeroOutput is the policy for requests without output; default ZeroOne.
	ZeroOutput ZeroPolicy
	// Requests says how requests are made beyond their prompts.
	Requests RequestConfig
	// Extra is a JSON object whose members every body gets.
	Extra []byte
	// KeepOutput stores the answers' text in the results.
	KeepOutput bool

	// Header fields, credentials and transport.
	Client ClientConfig

	// Shard, from 0, of Shards takes whole sessions; it is put into results.
	// Shards 0 or 1 is all.
	Shard, Shards int
	// LookAhead bounds the bytes of bodies that are rendered ahead; default 8 MiB.
	LookAhead int64

	// Sink takes the results, one at a time; it may keep them. After its first
	// error the run stops sending, and Run returns that error; the results that
	// are still to come go to Sink as before.
	Sink func(*record.Result) error
	// Series, if set, takes what the servers' /metrics say before, during and
	// after the run: series of one point each, labelled with record.ReplicaLabel.
	// It is never called twice at once, but beside Sink; its first error ends
	// the run as Sink's does.
	Series func(*record.Series) error
	// MetricsInterval is the time from one look at /metrics to the next, default
	// 1 s; negative: no look at all.
	MetricsInterval time.Duration
	// Prepared, if set, is called once the server is known, before the origin is
	// chosen: it may take its time. Target.Start is not known yet.
	Prepared func(Target) error
	// Started, if set, is called once the server is known and the origin is
	// chosen, before anything is handed to Sink.
	Started func(Target) error
	// Progress, if set, is called some times a second. While it runs no
	// further call is made, and nothing waits for it.
	Progress func(Progress)

	// coarse makes the pacer use Go's timers alone, dial stands in for the
	// network: tests with a false clock. resolve stands in for the resolver.
	coarse  bool
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	resolve func(ctx context.Context, host string) ([]string, error)
	// mostOutputs is the constant of that name, or less in tests.
	mostOutputs int
}

// ClientConfig says how the servers are spoken to.
type ClientConfig struct {
	// Headers are added to every request.
	Headers http.Header
	// APIKey is sent as a bearer token, to https or loopback URLs only.
	APIKey string
	// CACert holds PEM certificates to trust in place of the system's;
	// Insecure checks none.
	CACert   []byte
	Insecure bool
	// Proxy is the URL of an HTTP proxy; the environment's is never taken.
	Proxy string
	// RefreshNames is the age from which on a server's addresses are asked for
	// again, 0 for never.
	RefreshNames time.Duration
}

// Target is what is known of the server when the schedule starts.
type Target struct {
	// Start is the wall-clock time of the schedule's origin.
	Start time.Time
	// URLs and Proxy are masked.
	URLs  []string
	Proxy string
	// Addresses are the network addresses that the names stood for.
	Addresses []string
	Model     string
	// ContextLimit is the model's context in tokens, 0 where it is unknown or
	// of no matter.
	ContextLimit int64
	// ServerBlockSize is 0 where unknown. Overhead is what the template adds to
	// a prompt of text, in tokens; Tail is the part of it behind the prompt, 0
	// where that is not known.
	ServerBlockSize int
	Overhead, Tail  int64
	// Vocabulary is that of the prompts.
	Vocabulary prompt.Vocabulary
	// WarmUp is how many requests of the warm-up were answered.
	WarmUp int64
	// Notes are sentences worth telling before the run.
	Notes []string
}

const (
	defaultMaxInFlight  = 16384
	defaultTimeout      = 10 * time.Minute
	defaultGrace        = 30 * time.Second
	defaultReadyTimeout = 10 * time.Second
	defaultLookAhead    = 8 << 20
)

func (c *Config) fill() {
	setDefault(&c.API, openai.Completions)
	setDefault(&c.Speed, 1)
	setDefault(&c.mostOutputs, mostOutputs)
	setDefault(&c.Sessions, Open)
	setDefault(&c.MaxInFlight, defaultMaxInFlight)
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.Grace, defaultGrace)
	setDefault(&c.ReadyTimeout, defaultReadyTimeout)
	setDefault(&c.ZeroOutput, ZeroOne)
	c.Load.fill()
	setDefault(&c.LookAhead, defaultLookAhead)
	c.Requests.fill()
	setDefault(&c.MetricsInterval, defaultMetricsInterval)
	if c.Prompt == "" {
		c.Prompt = DefaultPrompt(c.API)
	}
	if c.Sink == nil {
		c.Sink = func(*record.Result) error { return nil }
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate says what in the configuration cannot be.
func (c *Config) Validate() error {
	if len(c.URLs) == 0 {
		return errors.New("no server URL")
	}
	for _, u := range c.URLs {
		if err := c.validateURL(u); err != nil {
			return err
		}
	}
	switch {
	case c.Speed < 0:
		return fmt.Errorf("speed %v: want more than 0", c.Speed)
	case c.MaxConcurrency < 0 || c.MaxInFlight < 0:
		return errors.New("negative limit of concurrency")
	}
	if err := c.validateLoad(); err != nil {
		return err
	}
	if err := c.validateRequests(); err != nil {
		return err
	}
	if err := c.validateProxy(); err != nil {
		return err
	}
	if err := c.ValidateExtra(); err != nil {
		return fmt.Errorf("extra fields: %w", err)
	}
	return nil
}

// setsLengths says whether literal bodies get the wanted length too, in place
// of their own.
func (c *Config) setsLengths() bool { return c.IgnoreEOS || c.MaxOutputTokens > 0 }

// schemeless is an address without its scheme, masked.
func schemeless(addr string) string {
	return strings.TrimPrefix(MaskURL("http://"+addr), "http://")
}

func (c *Config) validateProxy() error {
	proxy := c.Client.Proxy
	if proxy == "" {
		return nil
	}
	if !strings.Contains(proxy, "://") {
		return fmt.Errorf("proxy URL %s: http:// is missing, want http://HOST:PORT", schemeless(proxy))
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return fmt.Errorf("parse proxy URL: %w", maskURLError(err))
	}
	if u.Host == "" {
		return fmt.Errorf("proxy URL %s: want http://HOST:PORT", maskURL(u))
	}
	return nil
}

func (c *Config) validateURL(base string) error {
	if !strings.Contains(base, "://") {
		return fmt.Errorf("server URL %s: http:// is missing, want http://HOST or https://HOST", schemeless(base))
	}
	u, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("parse URL: %w", maskURLError(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("server URL %s: want http://HOST or https://HOST", maskURL(u))
	}
	if n, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || n < 1 || n > math.MaxUint16) {
		return fmt.Errorf("server URL %s: want a port from 1 to %d", maskURL(u), math.MaxUint16)
	}
	if c.Client.APIKey != "" && u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return fmt.Errorf("server URL %s: %w", maskURL(u), ErrKeyInClear)
	}
	return nil
}

// ErrKeyInClear refuses to send a credential unencrypted over a network.
var ErrKeyInClear = errors.New("the API key is sent to https or loopback URLs only")

// endpoint joins a server's base and a path; a base that ends in /v1 is
// taken as one that has it already.
func endpoint(base, path string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("parse URL: %w", maskURLError(err))
	}
	prefix := strings.TrimRight(u.Path, "/")
	if !strings.HasPrefix(path, "/v1/") || strings.HasSuffix(prefix, "/v1") {
		prefix = strings.TrimSuffix(prefix, "/v1")
	}
	u.Path = prefix + path
	return u, nil
}
