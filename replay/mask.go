package replay

import (
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const masked = "***"

// maskURL is u for eyes and files: without a password, and without the values
// of its query. The URL itself is not touched, for it is still to be used.
func maskURL(u *url.URL) string {
	c := *u
	c.User, c.RawQuery, c.Fragment = nil, "", ""
	text := c.String()
	if u.User != nil {
		text = strings.Replace(text, "//", "//"+masked+"@", 1)
	}
	if u.RawQuery == "" {
		return text
	}
	var keys []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		key, _, _ := strings.Cut(part, "=")
		keys = append(keys, key+"="+masked)
	}
	return text + "?" + strings.Join(keys, "&")
}

// MaskURL is a URL without credentials: what may be printed and recorded.
func MaskURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return masked
	}
	return maskURL(u)
}

// maskURLError takes the URL out of an error of net/url.
func maskURLError(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// scrubber takes secrets out of sentences that come from elsewhere: a server
// may well say "invalid key sk-…".
type scrubber struct{ replacer *strings.Replacer }

// newScrubber knows the secrets of a configuration. Very short ones are left
// alone: they would blot out innocent text and protect nothing.
func newScrubber(c *Config) scrubber {
	var secrets []string
	add := func(s string) {
		if len(s) >= 4 && !slices.Contains(secrets, s) {
			secrets = append(secrets, s)
		}
	}
	add(c.Client.APIKey)
	for name, values := range c.Client.Headers {
		if !openHeader(name) {
			for _, v := range values {
				add(v)
				for _, part := range headerParts(v) {
					add(part)
				}
			}
		}
	}
	for _, raw := range append(slices.Clone(c.URLs), c.Client.Proxy) {
		u, err := url.Parse(raw)
		if err != nil {
			continue
		}
		if u.User != nil {
			password, _ := u.User.Password()
			add(u.User.String())
			add(password)
			add(basic(u.User.Username(), password))
		}
		for _, values := range u.Query() {
			for _, v := range values {
				add(v)
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, masked)
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

// shortestPart is the length from which a part of a header's value is taken for
// a secret of its own: "Token" and "path=/" are none.
const shortestPart = 8

// headerParts are what in a header's value may be the secret proper: the
// credential behind the scheme of "Bearer sk-…", the values of cookies, the
// password of basic authentication.
func headerParts(value string) (parts []string) {
	fields := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ';' || r == ',' })
	for i, f := range fields {
		_, after, found := strings.Cut(f, "=")
		if decoded, err := base64.StdEncoding.DecodeString(f); err == nil && i > 0 && strings.EqualFold(fields[i-1], "Basic") {
			_, after, found = strings.Cut(string(decoded), ":")
		}
		if found && len(after) >= shortestPart {
			parts = append(parts, after)
		}
		if len(f) >= shortestPart {
			parts = append(parts, f)
		}
	}
	return parts
}

// basic is the credential of HTTP's basic authentication.
func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// clean masks the secrets in a text, and makes it fit for a file and a terminal:
// valid UTF-8 without control characters.
func (s scrubber) clean(text string) string {
	text = s.replacer.Replace(text)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// openHeader lists the headers whose values are no secrets.
func openHeader(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Accept", "Content-Type", "User-Agent", "X-Request-Id":
		return true
	}
	return false
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
