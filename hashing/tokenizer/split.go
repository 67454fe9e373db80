package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// splitter is one step of the pre-tokenizer. It calls next with each part of
// text, in order; first says that the text begins where the whole one does.
type splitter func(text string, first bool, next func(part string, first bool))

// gpt2 is the pattern that a ByteLevel pre-tokenizer splits at by itself.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// newSplitters makes what the pre-tokenizer's node says, in order. byteLevel
// says that the model sees bytes.
func newSplitters(n *node) (steps []splitter, byteLevel bool, err error) {
	if n == nil {
		return nil, false, nil
	}
	switch n.Type {
	case "Sequence":
		for i := range n.Pretokenizers {
			if byteLevel {
				return nil, false, errors.New("pre-tokenizer ByteLevel: found another one behind it, which is not supported")
			}
			some, bytes, err := newSplitters(&n.Pretokenizers[i])
			if err != nil {
				return nil, false, err
			}
			steps, byteLevel = append(steps, some...), bytes
		}
		return steps, byteLevel, nil
	case "Split":
		step, err := newSplit(n)
		return []splitter{step}, false, err
	case "Digits":
		expr := `\p{N}+`
		if n.Individual {
			expr = `\p{N}`
		}
		p, err := compile(expr)
		return []splitter{splitAt(p, isolated, false)}, false, err
	case "Metaspace":
		step, err := newMetaspace(n)
		return step, false, err
	case "ByteLevel":
		if isTrue(n.AddPrefixSpace) {
			steps = append(steps, prefixSpace)
		}
		if isTrue(n.UseRegex) {
			p, err := compile(gpt2)
			if err != nil {
				return nil, false, err
			}
			steps = append(steps, splitAt(p, isolated, false))
		}
		return steps, true, nil
	}
	return nil, false, fmt.Errorf("pre-tokenizer %q is not supported", n.Type)
}

// behavior says what becomes of the parts that a pattern matches.
type behavior string

const (
	isolated   behavior = "Isolated"
	removed    behavior = "Removed"
	withBefore behavior = "MergedWithPrevious"
	withNext   behavior = "MergedWithNext"
	contiguous behavior = "Contiguous"
)

// newSplit makes the step of a Split node.
func newSplit(n *node) (splitter, error) {
	b := behavior(n.Behavior)
	switch b {
	case isolated, removed, withBefore, withNext, contiguous:
	default:
		return nil, fmt.Errorf("pre-tokenizer Split: behavior %q is not supported", n.Behavior)
	}
	switch {
	case n.Pattern.Regex != nil:
		p, err := compile(*n.Pattern.Regex)
		if err != nil {
			return nil, fmt.Errorf("pre-tokenizer Split: %w", err)
		}
		return splitAt(p, b, n.Invert), nil
	case n.Pattern.String != nil && *n.Pattern.String != "" && len(*n.Pattern.String) <= maxPattern:
		return splitAt(literal(*n.Pattern.String), b, n.Invert), nil
	}
	return nil, errors.New("pre-tokenizer Split: found no pattern, expected a String or a Regex")
}

// splitAt is the step that splits at what p matches.
func splitAt(p *pattern, b behavior, invert bool) splitter {
	return func(text string, first bool, next func(string, bool)) {
		j := joiner{text: text, first: first, next: next, behavior: b}
		for at, plain := 0, 0; at < len(text); {
			end := p.match(text, at)
			if end <= at {
				_, size := decode(text, at)
				if at += size; at == len(text) {
					j.add(plain, at, invert)
				}
				continue
			}
			if plain < at {
				j.add(plain, at, invert)
			}
			j.add(at, end, !invert)
			at, plain = end, end
		}
		j.flush()
	}
}

// joiner puts the parts of a text together as a behavior wants it. Parts come
// in order and without gaps.
type joiner struct {
	text       string
	first      bool
	next       func(string, bool)
	behavior   behavior
	start, end int  // what is held back
	matched    bool // whether the last part of it matched
}

// add takes a part, and whether it counts as matched.
func (j *joiner) add(start, end int, matched bool) {
	joins := false
	switch j.behavior {
	case isolated:
	case removed:
		if matched {
			j.flush()
			j.start, j.end = end, end
			return
		}
	case withBefore:
		joins = matched && !j.matched
	case withNext:
		joins = j.matched && !matched
	case contiguous:
		joins = matched == j.matched
	}
	if !joins || j.start == j.end {
		j.flush()
		j.start = start
	}
	j.end, j.matched = end, matched
}

// flush hands on what is held back.
func (j *joiner) flush() {
	if j.start < j.end {
		j.next(j.text[j.start:j.end], j.first && j.start == 0)
	}
	j.start = j.end
}

// prefixSpace puts a space before a text that has none.
func prefixSpace(text string, first bool, next func(string, bool)) {
	if !strings.HasPrefix(text, " ") {
		text = " " + text
	}
	next(text, first)
}

// newMetaspace makes the steps of a Metaspace node: spaces become a visible
// rune, one stands before the text, and words begin with it.
func newMetaspace(n *node) ([]splitter, error) {
	mark := n.Replacement
	if utf8.RuneCountInString(mark) != 1 {
		return nil, fmt.Errorf("pre-tokenizer Metaspace: replacement %q: expected one character", mark)
	}
	scheme := n.PrependScheme
	if scheme == "" { // an older file
		scheme = "never"
		if isTrue(n.AddPrefixSpace) {
			scheme = "always"
		}
	}
	if scheme != "always" && scheme != "first" && scheme != "never" {
		return nil, fmt.Errorf("pre-tokenizer Metaspace: prepend scheme %q is not supported", scheme)
	}
	steps := []splitter{func(text string, first bool, next func(string, bool)) {
		text = strings.ReplaceAll(text, " ", mark)
		if (scheme == "always" || scheme == "first" && first) && !strings.HasPrefix(text, mark) {
			text = mark + text
		}
		next(text, first)
	}}
	if isTrue(n.Split) {
		steps = append(steps, splitAt(literal(mark), withNext, false))
	}
	return steps, nil
}
