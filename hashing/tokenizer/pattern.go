package tokenizer

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern finds the parts of a text that a regular expression matches, as
// Oniguruma does: the first alternative that fits, each repetition as long as
// it can be. It knows what the patterns of pre-tokenizers are made of:
// alternatives of runes and sets of runes, each repeated, optional groups, and
// the look-ahead (?!\S). Everything else is refused when it is compiled.
//
// Go's regexp is not used because it has no look-ahead, and because its fast
// engine takes short texts only.
type pattern struct {
	insts []inst
}

// inst is one instruction. Control only moves forward, so that a match ends,
// however it is written.
type inst struct {
	op opcode
	// set is what opRepeat and opNotAhead look at.
	set *class
	// min and max bound opRepeat, max -1 for no bound.
	min, max int
	// next is where opSplit goes if what follows it fails, and opJump at once.
	next int
}

type opcode uint8

const (
	opMatch opcode = iota
	opRepeat
	opNotAhead
	opSplit
	opJump
)

const (
	// maxPattern bounds a pattern's length in bytes.
	maxPattern = 8 << 10
	// maxOpenRepeats bounds the repetitions without a bound that may follow one
	// another: the time of a match can grow with the text's length to as high
	// a power.
	maxOpenRepeats = 3
	// maxInsts bounds a compiled pattern.
	maxInsts = 4096
	// ahead stands in for (?!\S) while Go's parser reads the pattern.
	ahead = unicode.MaxRune
)

// compile makes the pattern of an expression in Oniguruma's syntax.
func compile(expr string) (*pattern, error) {
	translated, err := translate(expr)
	if err != nil {
		return nil, fmt.Errorf("pattern %.200q: %w", expr, err)
	}
	tree, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("pattern %.200q: %w", expr, err)
	}
	p := &pattern{}
	open, err := p.add(tree)
	if err == nil && open > maxOpenRepeats {
		err = fmt.Errorf("found %d open repetitions behind one another, expected at most %d", open, maxOpenRepeats)
	}
	if err != nil {
		return nil, fmt.Errorf("pattern %.200q: %w", expr, err)
	}
	p.insts = append(p.insts, inst{op: opMatch})
	return p, nil
}

// literal makes the pattern of a text.
func literal(text string) *pattern {
	p := &pattern{}
	for _, r := range text {
		p.insts = append(p.insts, inst{op: opRepeat, set: newClass([]rune{r, r}), min: 1, max: 1})
	}
	p.insts = append(p.insts, inst{op: opMatch})
	return p
}

// add compiles a part, and tells how many open repetitions follow one another
// in it.
func (p *pattern) add(re *syntax.Regexp) (open int, err error) {
	if len(p.insts) > maxInsts {
		return 0, errors.New("it is too long")
	}
	if re.Flags&syntax.NonGreedy != 0 && re.Op >= syntax.OpStar && re.Op <= syntax.OpRepeat {
		return 0, fmt.Errorf("short repetitions (%s) are not supported", re)
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return 0, nil
	case syntax.OpCapture:
		return p.add(re.Sub[0])
	case syntax.OpLiteral:
		p.addLiteral(re)
		return 0, nil
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 0, p.addRepeat(re, 1, 1)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			n, err := p.add(sub)
			if open += n; err != nil {
				return 0, err
			}
		}
		return open, nil
	case syntax.OpAlternate:
		return p.addAlternatives(re.Sub)
	case syntax.OpStar:
		return 1, p.addRepeat(re.Sub[0], 0, -1)
	case syntax.OpPlus:
		return 1, p.addRepeat(re.Sub[0], 1, -1)
	case syntax.OpRepeat:
		if re.Max < 0 || re.Max > re.Min {
			open = 1
		}
		return open, p.addRepeat(re.Sub[0], re.Min, re.Max)
	case syntax.OpQuest:
		if sets(re.Sub[0]) != nil {
			return 0, p.addRepeat(re.Sub[0], 0, 1)
		}
		return p.addAlternatives([]*syntax.Regexp{re.Sub[0], {Op: syntax.OpEmptyMatch}})
	}
	return 0, fmt.Errorf("%s is not supported", re)
}

// addLiteral compiles a text, in which (?!\S) may stand.
func (p *pattern) addLiteral(re *syntax.Regexp) {
	for _, r := range re.Rune {
		in := inst{op: opRepeat, set: newClass([]rune{r, r}), min: 1, max: 1}
		switch {
		case r == ahead:
			in = inst{op: opNotAhead, set: newClass(complement(spaces))}
		case re.Flags&syntax.FoldCase != 0:
			in.set = foldClass(r)
		}
		p.insts = append(p.insts, in)
	}
}

// addRepeat compiles a repeated set.
func (p *pattern) addRepeat(re *syntax.Regexp, least, most int) error {
	set := sets(re)
	if set == nil {
		return fmt.Errorf("repeating %s is not supported", re)
	}
	if n := len(set.ranges); n > 1 && set.ranges[n-2] == ahead {
		return errors.New(`(?!\S) is not supported as a repetition, or as an alternative to one rune`)
	}
	p.insts = append(p.insts, inst{op: opRepeat, set: set, min: least, max: most})
	return nil
}

// addAlternatives compiles parts of which the first that fits is taken.
func (p *pattern) addAlternatives(list []*syntax.Regexp) (open int, err error) {
	var jumps []int
	for i, sub := range list {
		split := len(p.insts)
		if i < len(list)-1 {
			p.insts = append(p.insts, inst{op: opSplit})
		}
		n, err := p.add(sub)
		if open = max(open, n); err != nil {
			return 0, err
		}
		if i < len(list)-1 {
			jumps = append(jumps, len(p.insts))
			p.insts = append(p.insts, inst{op: opJump})
			p.insts[split].next = len(p.insts)
		}
	}
	for _, at := range jumps {
		p.insts[at].next = len(p.insts)
	}
	return open, nil
}

// sets is the set of runes that re matches one of, nil where it is more than that.
func sets(re *syntax.Regexp) *class {
	switch re.Op {
	case syntax.OpCapture:
		return sets(re.Sub[0])
	case syntax.OpCharClass:
		return newClass(re.Rune)
	case syntax.OpAnyChar:
		return newClass([]rune{0, unicode.MaxRune})
	case syntax.OpAnyCharNotNL:
		return newClass(complement([]rune{'\n', '\n'}))
	case syntax.OpLiteral:
		switch {
		case len(re.Rune) != 1:
			return nil
		case re.Flags&syntax.FoldCase != 0:
			return foldClass(re.Rune[0])
		}
		return newClass([]rune{re.Rune[0], re.Rune[0]})
	}
	return nil
}

// match is the end of the match that begins at i, -1 where none does.
func (p *pattern) match(s string, i int) int { return p.run(s, 0, i) }

func (p *pattern) run(s string, pc, i int) int {
	for {
		in := &p.insts[pc]
		switch in.op {
		case opMatch:
			return i
		case opJump:
			pc = in.next
			continue
		case opSplit:
			if end := p.run(s, pc+1, i); end >= 0 {
				return end
			}
			pc = in.next
			continue
		case opNotAhead:
			if r, size := decode(s, i); size > 0 && in.set.has(r) {
				return -1
			}
		case opRepeat:
			n, end := in.longest(s, i)
			if n < in.min {
				return -1
			}
			for ; n > in.min; n-- { // give back one at a time
				if e := p.run(s, pc+1, end); e >= 0 {
					return e
				}
				_, size := utf8.DecodeLastRuneInString(s[i:end])
				end -= size
			}
			i = end
		}
		pc++
	}
}

// longest is how many runes of the set follow i, and where they end.
func (in *inst) longest(s string, i int) (n, end int) {
	for n != in.max {
		r, size := decode(s, i)
		if size == 0 || !in.set.has(r) {
			break
		}
		i += size
		n++
	}
	return n, i
}

// decode is the rune at i and its length, 0 at the end.
func decode(s string, i int) (rune, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(s[i:])
}

// translate writes an expression of Oniguruma's as one of Go's with the same
// meaning, and refuses what would have another.
func translate(expr string) (string, error) {
	if len(expr) > maxPattern {
		return "", fmt.Errorf("found %d bytes, expected at most %d", len(expr), maxPattern)
	}
	if strings.ContainsRune(expr, ahead) || !utf8.ValidString(expr) {
		return "", errors.New("found a rune that cannot be searched for")
	}
	var out strings.Builder
	inClass := false
	for i := 0; i < len(expr); i++ {
		rest := expr[i:]
		switch c := expr[i]; {
		case c == '\\' && len(rest) > 1:
			text, n, err := translateEscape(rest, inClass)
			if err != nil {
				return "", err
			}
			out.WriteString(text)
			i += n - 1
		case inClass && (c == '[' || strings.HasPrefix(rest, "&&")):
			return "", errors.New("sets within sets are not supported")
		case c == '[':
			inClass = true
			out.WriteByte(c)
		case c == ']':
			inClass = false
			out.WriteByte(c)
		case !inClass && strings.HasPrefix(rest, `(?!\S)`):
			out.WriteString(`(?:\x{10FFFF})`)
			i += len(`(?!\S)`) - 1
		case !inClass && strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:") && !strings.HasPrefix(rest, "(?i:"):
			return "", fmt.Errorf("the group %.8s… is not supported", rest)
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), nil
}

// translateEscape writes the escape that text begins with, of n bytes.
func translateEscape(text string, inClass bool) (out string, n int, err error) {
	var set string
	switch c := text[1]; {
	case c == 's':
		set = rangesText(spaces)
	case c == 'S':
		set = rangesText(complement(spaces))
	case c == 'd':
		set = `\p{Nd}`
	case c == 'u' && len(text) >= 6:
		return `\x{` + text[2:6] + `}`, 6, nil
	case strings.IndexByte("pPrntfvx", c) >= 0 || c < utf8.RuneSelf && !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)):
		return text[:2], 2, nil
	default:
		return "", 0, fmt.Errorf(`\%c is not supported`, c)
	}
	if !inClass {
		set = "[" + set + "]"
	}
	return set, 2, nil
}

// rangesText writes ranges as they stand in a set.
func rangesText(ranges []rune) string {
	var b strings.Builder
	for i := 0; i < len(ranges); i += 2 {
		fmt.Fprintf(&b, `\x{%X}-\x{%X}`, ranges[i], ranges[i+1])
	}
	return b.String()
}
