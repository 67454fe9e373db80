package main

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
)

// row is one request in Mooncake's format.
type row struct {
	time, input, output int64
	blocks              []uint64
}

// append appends the row as a line of JSON.
func (r *row) append(b []byte) []byte {
	b = fmt.Appendf(b, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [`, r.time, r.input, r.output)
	for i, id := range r.blocks {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendUint(b, id, 10)
	}
	return append(b, "]}\n"...)
}

// writeRows writes n rows to a new file, as row i makes them.
func writeRows(path string, n int, make func(i int) row) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write a trace: %w", err)
	}
	defer func() {
		if e := file.Close(); err == nil && e != nil {
			err = fmt.Errorf("write a trace: %w", e)
		}
	}()
	w := bufio.NewWriterSize(file, 1<<20)
	var line []byte
	for i := range n {
		r := make(i)
		line = r.append(line[:0])
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("write a trace: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write a trace: %w", err)
	}
	return nil
}

// steadyRow is request i of an even load in microseconds: 16 tokens in, 4 out,
// all prompts different.
func steadyRow(i int, rate float64) row {
	return row{time: int64(float64(i) * 1e6 / rate), input: 16, output: 4, blocks: []uint64{uint64(i)}}
}

// wideRow is request i of an even load in microseconds with eight blocks of 16
// tokens, all but the first new in every request: what remembering blocks
// costs most.
func wideRow(i int, rate float64) row {
	r := row{time: int64(float64(i) * 1e6 / rate), input: 128 - int64(i%8), output: 4, blocks: make([]uint64, 8)}
	for j := 1; j < len(r.blocks); j++ {
		r.blocks[j] = uint64(i*7 + j)
	}
	return r
}

// shuffled is where i goes in an order of n that is far from sorted: a step
// near the golden section of n that has no divisor in common with it.
func shuffled(i, n int) int {
	step := int(float64(n) * 0.6180339887)
	for gcd(step, n) != 1 {
		step++
	}
	return int(uint64(i) * uint64(step) % uint64(n))
}

// gcd is the greatest common divisor.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// conversationRows makes what stands in for the Mooncake conversation trace
// where that is absent: as many requests, of like lengths, two in five of them
// the next turn of an earlier one.
func conversationRows(seed uint64) func(i int) row {
	rng := rand.New(rand.NewPCG(seed, 1))
	next := uint64(1)
	var open [][]uint64
	return func(i int) row {
		blocks := []uint64{0}
		if len(open) > 0 && rng.IntN(5) < 2 {
			blocks = open[rng.IntN(len(open))]
		}
		blocks = append([]uint64(nil), blocks...)
		for range 1 + int(math.Exp(rng.NormFloat64()*1.1+2.3)) {
			blocks = append(blocks, next)
			next++
		}
		open = append(open, blocks)
		if len(open) > 1000 {
			open = open[1:]
		}
		return row{
			time:   int64(i/10) * 3000,
			input:  int64(len(blocks))*512 - rng.Int64N(512),
			output: 1 + int64(math.Exp(rng.NormFloat64()*0.8+5.5)),
			blocks: blocks,
		}
	}
}
