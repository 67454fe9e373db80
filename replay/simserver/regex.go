package simserver

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// regexTries bounds how often a text is drawn until the expression matches it:
// what a walk cannot see (\b, ^ and $ inside) is left to luck.
const regexTries = 64

// regexText generates texts that a regular expression matches as a whole.
type regexText struct {
	tree  *syntax.Regexp
	check *regexp.Regexp
}

// parseRegex reads an expression in Go's syntax (RE2), which has all of
// Python's but look-around and back references.
func parseRegex(text string) (*regexText, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("structured_outputs.regex: the simulated server cannot read it: %w", err)
	}
	check, err := regexp.Compile(`^(?:` + text + `)$`)
	if err != nil {
		return nil, fmt.Errorf("structured_outputs.regex: the simulated server cannot read it: %w", err)
	}
	return &regexText{tree, check}, nil
}

// generate draws a text.
func (re *regexText) generate(seed uint64) (string, error) {
	d := &draws{seed: seed}
	for range regexTries {
		out, err := appendMatch(nil, re.tree, d)
		if err != nil {
			return "", err
		}
		if re.check.Match(out) {
			return string(out), nil
		}
	}
	return "", fmt.Errorf("structured_outputs.regex: the simulated server found no text in %d tries", regexTries)
}

// appendMatch appends a text that an expression matches where its assertions
// hold. Open repetitions have up to three more than they must.
func appendMatch(dst []byte, re *syntax.Regexp, d *draws) ([]byte, error) {
	var err error
	if len(dst) > maxConstrained {
		return dst, errTooLong
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return dst, fmt.Errorf("structured_outputs.regex: nothing matches it")
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			dst = utf8.AppendRune(dst, r)
		}
	case syntax.OpCharClass:
		return appendClass(dst, re.Rune, d)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return append(dst, byte('a'+d.below(26))), nil
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if dst, err = appendMatch(dst, sub, d); err != nil {
				return dst, err
			}
		}
	case syntax.OpAlternate:
		return appendMatch(dst, re.Sub[d.below(len(re.Sub))], d)
	case syntax.OpCapture:
		return appendMatch(dst, re.Sub[0], d)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		for n := repeats(re, d); n > 0; n-- {
			if dst, err = appendMatch(dst, re.Sub[0], d); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil // the rest are assertions
}

// repeats draws how often an expression is repeated.
func repeats(re *syntax.Regexp, d *draws) int {
	least, most := re.Min, re.Max
	switch re.Op {
	case syntax.OpStar:
		least, most = 0, -1
	case syntax.OpPlus:
		least, most = 1, -1
	case syntax.OpQuest:
		least, most = 0, 1
	}
	if most < 0 || most > least+3 {
		most = least + 3
	}
	return least + d.below(most-least+1)
}

// appendClass appends one character of a class, given as pairs of bounds: a
// printable one of ASCII where there is one.
func appendClass(dst []byte, pairs []rune, d *draws) ([]byte, error) {
	for _, bounds := range [][2]rune{{'0', '~'}, {' ', '~'}, {0, utf8.MaxRune}} {
		var fits []rune
		total := 0
		for i := 0; i+1 < len(pairs); i += 2 {
			lo, hi := max(pairs[i], bounds[0]), min(pairs[i+1], bounds[1])
			if lo <= hi {
				fits = append(fits, lo, hi)
				total += int(hi-lo) + 1
			}
		}
		if total == 0 {
			continue
		}
		k := rune(d.below(total))
		for i := 0; i < len(fits); i += 2 {
			if n := fits[i+1] - fits[i] + 1; k >= n {
				k -= n
				continue
			}
			r := fits[i] + k
			if !utf8.ValidRune(r) {
				r = fits[i]
			}
			return utf8.AppendRune(dst, r), nil
		}
	}
	return dst, fmt.Errorf("structured_outputs.regex: a class of characters is empty")
}
