package record_test

import (
	"bytes"
	"fmt"
	"time"

	"retrace/record"
)

// A trace of two turns, written to memory and read back.
func Example() {
	var file bytes.Buffer
	w, err := record.NewWriter(&file, record.Header{Kind: record.KindTrace, BlockSize: 512, Source: "mooncake"})
	if err != nil {
		fmt.Println(err)
		return
	}
	first := record.NewRequest()
	first.Arrival, first.InputTokens, first.OutputTokens = 0, 700, 100
	first.Blocks = []uint64{0, 1}
	second := record.NewRequest()
	second.Arrival, second.InputTokens, second.OutputTokens = 3*time.Second, 900, 80
	second.Blocks, second.Row = []uint64{0, 2}, 1
	for _, r := range []record.Request{first, second} {
		if err := w.WriteRequest(&r); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := w.Close(record.Footer{}); err != nil {
		fmt.Println(err)
		return
	}

	r, err := record.NewReader(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	fmt.Println(r.Header().Source, r.Header().BlockSize)
	for q, err := range r.Requests() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(q.Key(), q.Arrival, q.InputTokens, q.OutputTokens, q.Blocks)
	}
	fmt.Println("whole:", r.Loss() == nil)
	// Output:
	// mooncake 512
	// 0 0s 700 100 [0 1]
	// 1 3s 900 80 [0 2]
	// whole: true
}

// A file that was cut short still gives its whole chunks, and says what it lacks.
func ExampleReader_Loss() {
	var file bytes.Buffer
	w, _ := record.NewWriter(&file, record.Header{Kind: record.KindTrace})
	r := record.NewRequest()
	_ = w.WriteRequest(&r)
	_ = w.Flush() // closes the chunk
	_ = w.Close(record.Footer{})

	cut := file.Bytes()[:file.Len()-1]
	in, err := record.NewReader(bytes.NewReader(cut))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	n := 0
	for range in.Requests() {
		n++
	}
	fmt.Println(n, "request;", in.Loss().Err)
	// Output: 1 request; the file is cut short inside a frame
}

// Requests come back in the order of their keys, through temporary files where
// there are too many for memory.
func ExampleSorter() {
	s := record.NewSorter(record.SorterOptions{})
	defer s.Close()
	for row, at := range []time.Duration{5 * time.Second, time.Second, 3 * time.Second} {
		r := record.NewRequest()
		r.Row, r.Arrival = int64(row), at
		if err := s.Add(&r, int64(r.Arrival)); err != nil {
			fmt.Println(err)
			return
		}
	}
	for r, err := range s.Sorted() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Row, r.Arrival)
	}
	// Output:
	// 1 1s
	// 2 3s
	// 0 5s
}
