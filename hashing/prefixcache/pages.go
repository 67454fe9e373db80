package prefixcache

const (
	// listPage is the number of elements in a page of a list.
	listPage = 1 << 15
	// listStart is the number that the first page starts with.
	listStart = 1 << 10
)

// list is a growing array in pages, so that growing copies nothing but the
// first page and wastes at most a page.
type list[T any] struct {
	pages [][]T
	n     int
}

func (l *list[T]) add(v T) {
	last := l.room()
	*last = append(*last, v)
	l.n++
}

// addAll appends all of vs.
func (l *list[T]) addAll(vs []T) {
	for len(vs) > 0 {
		last := l.room()
		n := min(cap(*last)-len(*last), len(vs))
		*last = append(*last, vs[:n]...)
		l.n += n
		vs = vs[n:]
	}
}

// room is the last page, which has room for an element at least.
func (l *list[T]) room() *[]T {
	if l.n == len(l.pages)*listPage {
		l.pages = append(l.pages, make([]T, 0, min(listPage, listStart+l.n)))
	}
	last := &l.pages[len(l.pages)-1]
	if len(*last) == cap(*last) {
		*last = append(make([]T, 0, 2*cap(*last)), *last...)
	}
	return last
}

func (l *list[T]) at(i int) T { return l.pages[uint(i)/listPage][uint(i)%listPage] }

func (l *list[T]) ref(i int) *T { return &l.pages[uint(i)/listPage][uint(i)%listPage] }

// page is the elements from i on that are in one page with it.
func (l *list[T]) page(i int) []T { return l.pages[uint(i)/listPage][uint(i)%listPage:] }
