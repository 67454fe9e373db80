package simserver

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// ruleParser reads the expression of one rule.
type ruleParser struct {
	text  string
	pos   int
	lark  bool
	depth int
}

func parseRule(text string, lark bool) (*node, error) {
	p := &ruleParser{text: text, lark: lark}
	n, err := p.choice()
	if err == nil && p.pos < len(p.text) {
		err = p.unexpected("the end of the rule")
	}
	return n, err
}

func (p *ruleParser) unexpected(expected string) error {
	found := "the end"
	if p.pos < len(p.text) {
		found = strconv.Quote(p.text[p.pos:min(len(p.text), p.pos+10)])
	}
	return fmt.Errorf("at byte %d: found %s, expected %s", p.pos, found, expected)
}

// peek skips white space and comments and returns the next byte, 0 at the end.
func (p *ruleParser) peek() byte {
	for p.pos < len(p.text) {
		rest := p.text[p.pos:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			p.pos++
		case !p.lark && rest[0] == '#', p.lark && strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.pos += end
		default:
			return rest[0]
		}
	}
	return 0
}

// choice reads alternatives up to a closing bracket or the end.
func (p *ruleParser) choice() (*node, error) {
	if p.depth++; p.depth > 100 {
		return nil, errors.New("nesting passes 100 levels")
	}
	defer func() { p.depth-- }()
	n := &node{op: opChoice}
	for {
		one, err := p.sequence()
		if err != nil {
			return nil, err
		}
		n.subs = append(n.subs, one)
		if p.peek() != '|' {
			return n, nil
		}
		p.pos++
	}
}

func (p *ruleParser) sequence() (*node, error) {
	n := &node{op: opSequence}
	for {
		switch c := p.peek(); {
		case c == 0 || c == '|' || c == ')' || c == ']' && p.lark:
			return n, nil
		case c == '-' && strings.HasPrefix(p.text[p.pos:], "->"): // a name for the tree
			p.pos += 2
			p.peek()
			p.name()
			continue
		}
		one, err := p.item()
		if err != nil {
			return nil, err
		}
		n.subs = append(n.subs, one)
	}
}

func (p *ruleParser) name() string {
	start := p.pos
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if c != '_' && (c < '0' || c > '9') && (c != '-' || p.lark) {
				break
			}
		}
		p.pos++
	}
	return p.text[start:p.pos]
}

// item reads one term and how often it may come.
func (p *ruleParser) item() (*node, error) {
	n, err := p.term()
	if err != nil {
		return nil, err
	}
	repeat := &node{op: opRepeat, subs: []*node{n}, max: -1}
	switch p.peek() {
	case '*':
	case '+':
		repeat.min = 1
	case '?':
		repeat.max = 1
	case '{', '~':
		return repeat, p.bounds(repeat)
	default:
		return n, nil
	}
	p.pos++
	return repeat, nil
}

var repetition = regexp.MustCompile(`^(?:\{\s*(\d{1,6})\s*(?:(,)\s*(\d{1,6})?\s*)?\}|~\s*(\d{1,6})(?:\.\.(\d{1,6}))?)`)

// bounds reads {n}, {n,}, {n,m}, or Lark's ~n and ~n..m.
func (p *ruleParser) bounds(n *node) error {
	m := repetition.FindStringSubmatch(p.text[p.pos:])
	if m == nil {
		return p.unexpected("{n}, {n,} or {n,m}")
	}
	p.pos += len(m[0])
	least, most := m[1]+m[4], m[3]+m[5]
	n.min, _ = strconv.Atoi(least)
	switch {
	case most != "":
		n.max, _ = strconv.Atoi(most)
	case m[2] == "":
		n.max = n.min
	}
	if n.max >= 0 && n.max < n.min {
		return fmt.Errorf("found %s, expected the larger number behind", m[0])
	}
	return nil
}

// term reads a terminal, a reference or a group.
func (p *ruleParser) term() (*node, error) {
	switch c := p.peek(); {
	case c == '(':
		return p.group(')')
	case c == '[' && p.lark:
		n, err := p.group(']')
		return &node{op: opRepeat, subs: []*node{n}, max: 1}, err
	case c == '[':
		return p.terminal(`^\[(?:[^\]\\]|\\.)*\]`, func(t string) string { return t })
	case c == '"':
		return p.terminal(`^"(?:[^"\\]|\\.)*"i?`, unquoteTerminal)
	case c == '\'':
		return p.terminal(`^'(?:[^'\\]|\\.)*'`, unquoteTerminal)
	case c == '/' && p.lark:
		return p.terminal(`^/(?:[^/\\\n]|\\.)+/[imslux]*`, func(t string) string { return t[1:strings.LastIndexByte(t, '/')] })
	case c == '.' && !p.lark:
		p.pos++
		return terminalNode(".")
	}
	name := p.name()
	if name == "" {
		return nil, p.unexpected("a terminal, a rule's name or '('")
	}
	return &node{op: opRule, name: name}, nil
}

func (p *ruleParser) group(last byte) (*node, error) {
	p.pos++
	n, err := p.choice()
	if err != nil {
		return nil, err
	}
	if p.peek() != last {
		return nil, p.unexpected(strconv.QuoteRune(rune(last)))
	}
	p.pos++
	return n, nil
}

// unquoteTerminal is the expression of a quoted text.
func unquoteTerminal(t string) string {
	t = strings.TrimSuffix(t, "i")
	t = t[1 : len(t)-1]
	if text, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.ReplaceAll(t, `\'`, `'`), "\n", `\n`) + `"`); err == nil {
		t = text
	}
	return regexp.QuoteMeta(t)
}

// terminal reads a terminal by its shape and turns it into an expression.
func (p *ruleParser) terminal(shape string, to func(string) string) (*node, error) {
	found := regexp.MustCompile(shape).FindString(p.text[p.pos:])
	if found == "" {
		return nil, p.unexpected("the end of a terminal")
	}
	p.pos += len(found)
	if p.lark && strings.HasPrefix(p.text[p.pos:], "..") {
		return nil, p.unexpected("no range")
	}
	return terminalNode(to(found))
}

func terminalNode(expression string) (*node, error) {
	tree, err := syntax.Parse(expression, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil, fmt.Errorf("read terminal: %w", err)
	}
	return &node{op: opText, text: tree}, nil
}
