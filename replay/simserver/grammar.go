package simserver

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// The bounds of a grammar: its text's bytes, its rules, the depth from which only the
// shortest way out is taken, and the steps of one derivation.
const (
	maxGrammar   = 256 << 10
	maxRules     = 2000
	grammarDepth = 12
	maxSteps     = 1 << 18
)

// grammar is a set of rules, in GBNF (name ::= …) or Lark (name: …).
type grammar struct {
	rules map[string]*rule
	start string
}

type rule struct {
	body   *node
	height int // of its lowest derivation
}

// node is one expression of a rule.
type node struct {
	op       nodeOp
	subs     []*node
	min, max int            // of a repetition; max −1: without end
	text     *syntax.Regexp // of a terminal
	name     string         // of a reference
}

type nodeOp uint8

const (
	opSequence nodeOp = iota
	opChoice
	opRepeat
	opText
	opRule
)

var ruleHead = regexp.MustCompile(`^\s*[?!]?([A-Za-z_][A-Za-z0-9_-]*)(?:\.\d+)?\s*(::=|:)`)

// parseGrammar reads the rules. Of Lark it knows no imports, templates and
// ranges; what is ignored between tokens is left out.
func parseGrammar(text string) (*grammar, error) {
	if len(text) > maxGrammar {
		return nil, fmt.Errorf("structured_outputs.grammar: found %d bytes, expected at most %d", len(text), maxGrammar)
	}
	g := &grammar{rules: map[string]*rule{}}
	var name, body string
	lark := false
	add := func() error {
		if name == "" {
			return nil
		}
		n, err := parseRule(body, lark)
		if err != nil {
			return fmt.Errorf("structured_outputs.grammar: rule %s: %w", name, err)
		}
		g.rules[name] = &rule{body: n, height: math.MaxInt}
		if len(g.rules) > maxRules {
			return fmt.Errorf("structured_outputs.grammar: found more than %d rules", maxRules)
		}
		if g.start == "" || name == "root" || name == "start" && g.start != "root" {
			g.start = name
		}
		return nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "%ignore") {
			continue
		}
		if strings.HasPrefix(line, "%") {
			return nil, fmt.Errorf("structured_outputs.grammar: the simulated server does not know %q", openClip(line))
		}
		if m := ruleHead.FindStringSubmatchIndex(line); m != nil {
			if err := add(); err != nil {
				return nil, err
			}
			name, body, lark = line[m[2]:m[3]], line[m[1]:], line[m[4]:m[5]] == ":"
			continue
		}
		body += "\n" + line
	}
	if err := add(); err != nil {
		return nil, err
	}
	return g, g.measure()
}

func openClip(line string) string { return line[:min(len(line), 40)] }

// measure finds the height of each rule, and refuses a grammar whose start has
// no finite sentence, or that refers to a rule it lacks.
func (g *grammar) measure() error {
	if g.start == "" {
		return errors.New("structured_outputs.grammar: found no rule, expected name ::= expression")
	}
	for _, r := range g.rules {
		if name := g.missing(r.body); name != "" {
			return fmt.Errorf("structured_outputs.grammar: found no rule %s", name)
		}
	}
	for changed := true; changed; {
		changed = false
		for _, r := range g.rules {
			if h := g.height(r.body); h < r.height {
				r.height, changed = h, true
			}
		}
	}
	if g.rules[g.start].height == math.MaxInt {
		return fmt.Errorf("structured_outputs.grammar: rule %s has no finite sentence", g.start)
	}
	return nil
}

func (g *grammar) missing(n *node) string {
	if n.op == opRule && g.rules[n.name] == nil {
		return n.name
	}
	for _, sub := range n.subs {
		if name := g.missing(sub); name != "" {
			return name
		}
	}
	return ""
}

// height is the least number of rules under each other that an expression needs.
func (g *grammar) height(n *node) int {
	h := 0
	switch n.op {
	case opRule:
		if of := g.rules[n.name].height; of != math.MaxInt {
			return of + 1
		}
		return math.MaxInt
	case opChoice:
		h = math.MaxInt
		for _, sub := range n.subs {
			h = min(h, g.height(sub))
		}
	case opRepeat:
		if n.min > 0 {
			h = g.height(n.subs[0])
		}
	default:
		for _, sub := range n.subs {
			h = max(h, g.height(sub))
		}
	}
	return h
}

// generate draws a sentence.
func (g *grammar) generate(seed uint64) (string, error) {
	w := &derivation{g: g, draws: draws{seed: seed}}
	out, err := w.append(nil, &node{op: opRule, name: g.start}, 0)
	return string(out), err
}

// derivation is a sentence in the making.
type derivation struct {
	draws
	g     *grammar
	steps int
}

func (w *derivation) append(dst []byte, n *node, depth int) ([]byte, error) {
	var err error
	if w.steps++; w.steps > maxSteps || len(dst) > maxConstrained {
		return dst, errTooLong
	}
	switch n.op {
	case opText:
		return appendMatch(dst, n.text, &w.draws)
	case opRule:
		return w.append(dst, w.g.rules[n.name].body, depth+1)
	case opChoice:
		return w.append(dst, w.choose(n.subs, depth), depth)
	case opRepeat:
		most := n.max
		if most < 0 || most > n.min+3 {
			most = n.min + 3
		}
		times := n.min
		if depth < grammarDepth && w.g.height(n.subs[0]) != math.MaxInt {
			times += w.below(most - n.min + 1)
		}
		for range times {
			if dst, err = w.append(dst, n.subs[0], depth); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
	for _, sub := range n.subs {
		if dst, err = w.append(dst, sub, depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// choose draws an alternative that has an end; deep down the lowest.
func (w *derivation) choose(subs []*node, depth int) *node {
	best, low := subs[0], math.MaxInt
	var finite []*node
	for _, sub := range subs {
		h := w.g.height(sub)
		if h < low {
			best, low = sub, h
		}
		if h != math.MaxInt {
			finite = append(finite, sub)
		}
	}
	if depth >= grammarDepth || len(finite) == 0 {
		return best
	}
	return finite[w.below(len(finite))]
}

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
