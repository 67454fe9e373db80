package replay

import "sync"

// slots lets at most limit jobs run at once; the others wait in line. A limit
// of 0 is none.
type slots struct {
	mu     sync.Mutex
	limit  int
	active int
	line   []*job
	head   int
}

// try is true where a job may run at once.
func (s *slots) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take()
}

func (s *slots) take() bool {
	if s.limit > 0 && s.active >= s.limit {
		return false
	}
	s.active++
	return true
}

// enter is true where j may run at once, and puts it into the line elsewise.
func (s *slots) enter(j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.take() {
		return true
	}
	s.line = append(s.line, j)
	return false
}

// leave gives a slot back, and the job that it is granted to, if any.
func (s *slots) leave() *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == len(s.line) {
		s.active--
		return nil
	}
	j := s.line[s.head]
	s.line[s.head] = nil
	s.head++
	if s.head == len(s.line) || s.head > 1024 && s.head > len(s.line)/2 {
		s.line = append(s.line[:0], s.line[s.head:]...)
		s.head = 0
	}
	return j
}

// flush empties the line.
func (s *slots) flush() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := append([]*job(nil), s.line[s.head:]...)
	s.line, s.head = nil, 0
	return line
}

func (s *slots) counts() (active, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active, len(s.line) - s.head
}
