package openai

// scan walks one JSON text strictly. Where it meets a mistake, or something
// that it leaves to encoding/json, it fails for good.
type scan struct {
	b    []byte
	i    int
	fail bool
}

// scanDepth is how deep the fast scan goes before it hands over.
const scanDepth = 64

// parseFast reads the shapes that servers send. False says that it gave up,
// and c is to be parsed anew.
func (c *Piece) parseFast(data []byte) bool {
	c.reset()
	s := &scan{b: data}
	var seen keySet
	var kind, delta []byte
	s.object(func(key []byte) {
		switch string(key) {
		case "choices":
			seen.add(s, 0)
			c.scanChoices(s)
		case "usage":
			seen.add(s, 1)
			c.scanUsage(s)
		case "error":
			seen.add(s, 2)
			if !s.null() {
				s.fail = true
			}
		case "object":
			seen.add(s, 3)
			switch string(s.value(0)) {
			case `"error"`, `"response"`:
				s.fail = true
			}
		case "type":
			seen.add(s, 4)
			kind = s.text()
		case "delta":
			seen.add(s, 5)
			delta = s.text()
		case "token", "generated_text", "data", "results", "text", "metrics", "timings":
			if !s.null() { // of another shape, or rare
				s.fail = true
			}
		default:
			s.value(0)
		}
	})
	s.space()
	if s.fail || s.i != len(s.b) {
		return false
	}
	if kind != nil && !c.HasChoices {
		return c.scanned(kind, delta)
	}
	return kind == nil || c.HasChoices
}

// scanned takes a typed event; false where it is not one of those that are
// sent often.
func (c *Piece) scanned(kind, delta []byte) bool {
	kind = kind[1 : len(kind)-1]
	switch string(kind) {
	case "response.output_text.delta":
		c.Shape = ShapeResponse
		c.delta(Content, delta, 0)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		c.Shape = ShapeResponse
		c.delta(Reasoning, delta, 0)
	case "transcript.text.delta":
		c.Shape = ShapeTranscript
		c.delta(Content, delta, 0)
	default:
		return false
	}
	return true
}

// keySet fails a scan at the second occurrence of a key that matters: which
// one counts is encoding/json's to say.
type keySet uint32

func (k *keySet) add(s *scan, bit int) {
	if *k&(1<<bit) != 0 {
		s.fail = true
	}
	*k |= 1 << bit
}

func (c *Piece) scanChoices(s *scan) {
	if s.null() {
		return
	}
	c.HasChoices, c.Shape = true, ShapeChoices
	s.array(func() {
		c.Parts = append(c.Parts, Part{Tokens: Unknown})
		p := &c.Parts[len(c.Parts)-1]
		var seen keySet
		var text []byte
		s.object(func(key []byte) {
			switch string(key) {
			case "index":
				seen.add(s, 0)
				p.Index = s.index()
			case "text":
				seen.add(s, 1)
				text = s.text()
			case "delta":
				seen.add(s, 2)
				p.scanDelta(s)
			case "finish_reason":
				seen.add(s, 3)
				p.FinishReason = s.text()
			case "token_ids":
				seen.add(s, 4)
				p.Tokens = s.length()
			case "message":
				s.fail = true
			default:
				s.value(0)
			}
		})
		if text != nil {
			p.Content = text
		}
	})
}

func (p *Part) scanDelta(s *scan) {
	if s.null() {
		return
	}
	var seen keySet
	var second []byte
	s.object(func(key []byte) {
		switch string(key) {
		case "content":
			seen.add(s, 0)
			p.Content = s.text()
		case "reasoning_content":
			seen.add(s, 1)
			p.Reasoning = s.text()
		case "reasoning":
			seen.add(s, 2)
			second = s.text()
		case "refusal":
			seen.add(s, 3)
			p.Refusal = s.text()
		case "tool_calls", "function_call":
			if !s.null() {
				s.fail = true
			}
		default:
			s.value(0)
		}
	})
	if p.Reasoning == nil {
		p.Reasoning = second
	}
}

func (c *Piece) scanUsage(s *scan) {
	if s.null() {
		return
	}
	c.HasUsage = true
	var seen keySet
	s.object(func(key []byte) {
		switch string(key) {
		case "prompt_tokens":
			seen.add(s, 0)
			c.Usage.Prompt = s.count()
		case "completion_tokens":
			seen.add(s, 1)
			c.Usage.Completion = s.count()
		case "total_tokens":
			seen.add(s, 2)
			c.Usage.Total = s.count()
		case "input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details":
			s.fail = true
		case "prompt_tokens_details":
			seen.add(s, 3)
			c.Usage.Cached = s.detail("cached_tokens")
		case "completion_tokens_details":
			seen.add(s, 4)
			c.Usage.Reasoning = s.detail("reasoning_tokens")
		default:
			s.value(0)
		}
	})
}

// detail is one count of a nested object.
func (s *scan) detail(name string) int64 {
	n := Unknown
	if s.null() {
		return n
	}
	var seen keySet
	s.object(func(key []byte) {
		if string(key) == name {
			seen.add(s, 0)
			n = s.count()
			return
		}
		switch string(key) {
		case "multimodal_tokens", mediaCounts[0], mediaCounts[1], mediaCounts[2]:
			if !s.null() {
				s.fail = true
			}
		default:
			s.value(0)
		}
	})
	return n
}

// length is the number of an array's elements, Unknown of null; other types fail.
func (s *scan) length() int64 {
	if s.null() {
		return Unknown
	}
	n := int64(0)
	s.array(func() {
		s.value(1)
		n++
	})
	return n
}

// text is a string with something in it, nil for "" and null; other types fail.
func (s *scan) text() []byte {
	if s.null() {
		return nil
	}
	return nonEmptyString(s.str())
}

// count is a plain integer up to maxCount; null is Unknown, all else fails.
func (s *scan) count() int64 {
	if s.null() {
		return Unknown
	}
	s.space()
	start := s.i
	var n int64
	for s.i < len(s.b) && s.b[s.i]-'0' < 10 {
		n = n*10 + int64(s.b[s.i]-'0')
		s.i++
		if s.i-start > 15 {
			break
		}
	}
	digits := s.i - start
	if digits == 0 || n > maxCount || (digits > 1 && s.b[start] == '0') || s.inNumber() {
		s.fail = true
	}
	return n
}

func (s *scan) inNumber() bool {
	if s.i == len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '.', 'e', 'E', '+', '-':
		return true
	}
	return false
}

func (s *scan) index() int {
	n := s.count()
	if n > 1<<20 {
		s.fail = true
	}
	return int(max(n, 0))
}
