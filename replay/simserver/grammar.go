package simserver

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
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
