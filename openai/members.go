package openai

// EachMember calls member for each member of the JSON object that is the whole
// body, in the body's order: its key and where its raw value stands. It does
// not look into the values but for their grammar. The error is the body's
// *RequestError, or member's own.
func EachMember(body []byte, member func(key string, start, end int) error) error {
	return parseObject(body, func(s *scanner, key string) error {
		s.peek()
		start := s.pos
		if err := s.skip(); err != nil {
			return err
		}
		return member(key, start, s.pos)
	})
}
