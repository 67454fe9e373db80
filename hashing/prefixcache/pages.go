package prefixcache

// listPage is the number of elements in a page of a list.
const listPage = 1 << 15

// list is a growing array in pages, so that growing copies nothing and wastes
// at most a page.
type list[T any] struct {
	pages [][]T
	n     int
}

func (l *list[T]) add(v T) {
	if l.n == len(l.pages)*listPage {
		l.pages = append(l.pages, make([]T, 0, listPage))
	}
	last := &l.pages[len(l.pages)-1]
	*last = append(*last, v)
	l.n++
}

// addAll appends all of vs.
func (l *list[T]) addAll(vs []T) {
	for len(vs) > 0 {
		if l.n == len(l.pages)*listPage {
			l.pages = append(l.pages, make([]T, 0, listPage))
		}
		last := &l.pages[len(l.pages)-1]
		n := min(listPage-len(*last), len(vs))
		*last = append(*last, vs[:n]...)
		l.n += n
		vs = vs[n:]
	}
}

func (l *list[T]) at(i int) T { return l.pages[i/listPage][i%listPage] }

func (l *list[T]) ref(i int) *T { return &l.pages[i/listPage][i%listPage] }
