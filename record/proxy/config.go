package proxy

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"retrace/hashing/tokenizer"
	"retrace/record/capture"
)

// MaxBlockSize bounds a prefix block, in tokens.
const MaxBlockSize = 1 << 15

// Config describes a recording proxy.
type Config struct {
	// Upstream is the base of the server's URL; of the scheme h2c it is spoken
	// to by HTTP/2 without TLS.
	Upstream *url.URL
	// Output is the trace's path; Force overwrites what is there.
	Output string
	Force  bool
	// RotateSize, in bytes, and RotateEvery are when another file begins, 0 never:
	// NAME.trace is then NAME.0001.trace, NAME.0002.trace and so on.
	RotateSize  int64
	RotateEvery time.Duration
	// Capture is what is kept; BlockSize the length of a prefix block in tokens.
	Capture   capture.Mode
	BlockSize int
	// Tokenizer makes tokens of text; without one, blocks of text are of bytes.
	Tokenizer *tokenizer.Tokenizer
	// Salt keys all hashes.
	Salt capture.Salt
	// SessionHeader is a request header that names the session, "" for none.
	SessionHeader string
	// Warn is told what a user should know while the proxy runs.
	Warn func(sentence string)
}

// ParseUpstream reads a server's base URL.
func ParseUpstream(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("upstream: not a URL") // url's error repeats it, a password within
	}
	switch {
	case u.User != nil:
		return nil, errors.New("upstream: found a user name in the URL, expected none: the client's own Authorization is passed on")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("upstream: found a query or a fragment, expected scheme, host and path only")
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		return nil, fmt.Errorf("upstream: found %q, expected http://HOST, https://HOST or h2c://HOST", text)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = strings.TrimSuffix(u.RawPath, "/")
	return u, nil
}

func (c *Config) validate() error {
	if c.Upstream == nil {
		return errors.New("upstream: found none")
	}
	if _, err := capture.ParseMode(string(c.Capture)); err != nil {
		return err
	}
	if c.BlockSize < 1 || c.BlockSize > MaxBlockSize {
		return fmt.Errorf("block size: found %d, expected 1 to %d", c.BlockSize, MaxBlockSize)
	}
	return nil
}
