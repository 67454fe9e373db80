package simserver

import (
	"errors"
	"fmt"

	"retrace/openai"
)

// maxConstrained bounds one constrained text, in bytes.
const maxConstrained = 256 << 10

var errTooLong = fmt.Errorf("the structured output would pass %d bytes, the simulated server's bound", maxConstrained)

// constraintOf makes what generates text that conforms to a constraint, from a
// seed; nil for free text. It refuses what cannot be generated.
func constraintOf(c *openai.Structured) (func(uint64) (string, error), error) {
	switch c.Kind {
	case openai.JSONObject:
		return func(seed uint64) (string, error) { return fromSchema([]byte(anyObject), seed) }, nil
	case openai.JSONSchema:
		return func(seed uint64) (string, error) { return fromSchema(c.Schema, seed) }, nil
	case openai.Regex:
		re, err := parseRegex(c.Text)
		if err != nil {
			return nil, err
		}
		return re.generate, nil
	case openai.Choice:
		if len(c.Choices) == 0 {
			return nil, errors.New("structured_outputs.choice: found no choices, expected at least one")
		}
		return func(seed uint64) (string, error) { return c.Choices[mix(seed, 0)%uint64(len(c.Choices))], nil }, nil
	case openai.Grammar:
		g, err := parseGrammar(c.Text)
		if err != nil {
			return nil, err
		}
		return g.generate, nil
	}
	return nil, nil
}

// anyObject is the schema of the object that json_object gives.
const anyObject = `{"type":"object","properties":{"answer":{"type":"string","minLength":1},"score":{"type":"integer","minimum":0,"maximum":100}},` +
	`"required":["answer","score"]}`

// draws is a sequence of random numbers.
type draws struct {
	seed uint64
	n    int
}

// below draws a number from 0 to n−1.
func (d *draws) below(n int) int {
	d.n++
	return int(mix(d.seed, d.n) % uint64(n))
}

// syllables are what made-up words are made of.
const syllableConsonants, syllableVowels = "bdfgklmnprstvwzh", "aeio"

// word draws a word of n letters.
func (d *draws) word(n int) string {
	out := make([]byte, n)
	for i := range out {
		if i%2 == 0 {
			out[i] = syllableConsonants[d.below(len(syllableConsonants))]
		} else {
			out[i] = syllableVowels[d.below(len(syllableVowels))]
		}
	}
	return string(out)
}
