package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// normalizer rewrites a text before it is split.
type normalizer func(string) string

// node is the JSON of a normalizer, a pre-tokenizer, a decoder or a
// post-processor, in any of its forms.
type node struct {
	Type string `json:"type"`

	Normalizers   []node `json:"normalizers"`
	Pretokenizers []node `json:"pretokenizers"`
	Decoders      []node `json:"decoders"`
	Processors    []node `json:"processors"`

	Pattern struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	} `json:"pattern"`
	Content string `json:"content"`
	Prepend string `json:"prepend"`

	Behavior       string `json:"behavior"`
	Invert         bool   `json:"invert"`
	AddPrefixSpace *bool  `json:"add_prefix_space"`
	UseRegex       *bool  `json:"use_regex"`

	Replacement   string `json:"replacement"`
	PrependScheme string `json:"prepend_scheme"`
	Split         *bool  `json:"split"`
	Individual    bool   `json:"individual_digits"`

	Start int `json:"start"`
	Stop  int `json:"stop"`

	Single        []templatePiece `json:"single"`
	SpecialTokens map[string]struct {
		IDs []uint32 `json:"ids"`
	} `json:"special_tokens"`
}

// parseNode reads a part of the file, which may be null.
func parseNode(raw json.RawMessage) (*node, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil // there is none
	}
	var n node
	if err := json.Unmarshal(raw, &n); err != nil {
		return nil, err
	}
	return &n, nil
}

// isTrue is a flag whose absence means true.
func isTrue(b *bool) bool { return b == nil || *b }

// newNormalizers makes what the node says, in order.
func newNormalizers(n *node) ([]normalizer, error) {
	if n == nil {
		return nil, nil
	}
	switch n.Type {
	case "Sequence":
		var all []normalizer
		for i := range n.Normalizers {
			some, err := newNormalizers(&n.Normalizers[i])
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	case "NFC":
		return []normalizer{norm.NFC.String}, nil
	case "NFD":
		return []normalizer{norm.NFD.String}, nil
	case "NFKC":
		return []normalizer{norm.NFKC.String}, nil
	case "NFKD":
		return []normalizer{norm.NFKD.String}, nil
	case "Prepend":
		return []normalizer{func(s string) string {
			if s == "" {
				return s
			}
			return n.Prepend + s
		}}, nil
	case "Replace":
		old := n.Pattern.String
		if old == nil || *old == "" {
			return nil, fmt.Errorf("normalizer Replace: found no pattern of type String, which is all that is supported")
		}
		return []normalizer{func(s string) string { return strings.ReplaceAll(s, *old, n.Content) }}, nil
	}
	return nil, fmt.Errorf("normalizer %q is not supported", n.Type)
}

const (
	// maxGrowth bounds how many times longer normalizers may make a text.
	maxGrowth = 64
	// maxPrefix bounds what they may put before it, in bytes.
	maxPrefix = 64
)

// growth is how many times longer a node makes a text at most.
func growth(n *node) (times int, err error) {
	switch {
	case n == nil:
		return 1, nil
	case n.Type == "Prepend" && len(n.Prepend) > maxPrefix:
		return 0, fmt.Errorf("normalizer Prepend: found %d bytes, expected at most %d", len(n.Prepend), maxPrefix)
	case n.Type == "Replace" && n.Pattern.String != nil && *n.Pattern.String != "":
		return max(1, (len(n.Content)+len(*n.Pattern.String)-1)/len(*n.Pattern.String)), nil
	}
	times = 1
	for i := range n.Normalizers {
		of, err := growth(&n.Normalizers[i])
		if err != nil {
			return 0, err
		}
		if times *= of; times > maxGrowth {
			return 0, fmt.Errorf("a text may grow to %d times its length, expected at most %d", times, maxGrowth)
		}
	}
	return times, nil
}

// normalize applies all normalizers.
func (t *Tokenizer) normalize(s string) string {
	for _, f := range t.normalizers {
		s = f(s)
	}
	return s
}
