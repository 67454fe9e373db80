package record

import (
	"bytes"
	"runtime"
	"testing"
	"time"
)

// FuzzReader feeds a reader anything: it never panics, and allocates no more
// than files of its bounds can hold.
func FuzzReader(f *testing.F) {
	whole := file(f, small(), 2)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(blobFile(f, pictures(), 2))
	f.Add(whole[:60])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := readAll(b)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 4*maxItemBytes+1000*uint64(len(b)) {
			t.Errorf("%d bytes allocated for %d", n, len(b))
		}
		if err == nil && len(b) == 0 {
			t.Error("nothing reads as an empty trace")
		}
		_ = got
	})
}

// FuzzChunk decodes anything as the columns of a chunk. What decodes is
// encoded again, and must come back.
func FuzzChunk(f *testing.F) {
	for _, c := range [][]Request{small().requests, small().requests[3:4]} {
		var stage requestStage
		codec := requestCodec{blockSize: 16}
		codec.begin()
		for i := range c {
			stage.add(&c[i], 0)
			codec.enc.add(&codec.in, &c[i], 16)
		}
		f.Add(codec.encode(nil, chunkHead{kind: itemRequests, count: len(c)}, &stage))
	}
	res := small().results
	f.Add((&resultCodec{}).encode(nil, chunkHead{kind: itemResults, count: len(res)}, res))
	ser := small().series
	f.Add((&seriesCodec{}).encode(nil, chunkHead{kind: itemSeries, count: len(ser)}, ser))
	f.Fuzz(func(t *testing.T, item []byte) {
		cur := &cursor{b: item}
		kind, n, err := itemKind(cur)
		if err != nil || kind == itemHeader || kind == itemFooter {
			return
		}
		h, err := readChunkHead(cur, kind, n)
		if err != nil {
			return
		}
		switch kind {
		case itemRequests:
			fuzzRequests(t, cur, h)
		case itemResults:
			fuzzResults(t, cur, h)
		case itemSeries:
			if err := (&seriesCodec{}).decode(cur, h); err != nil {
				return
			}
		}
	})
}

func fuzzRequests(t *testing.T, cur *cursor, h chunkHead) {
	codec := requestCodec{blockSize: 16}
	if codec.decode(cur, h) != nil {
		return
	}
	recs := make([]Request, h.count)
	for i := range recs {
		recs[i] = *codec.at(i)
	}
	c := content{header: Header{BlockSize: 16}, requests: recs}
	for i := range recs {
		if requestBytes(&recs[i]) > 1<<20 {
			return // slow, and no news
		}
	}
	got, err := readAll(file(t, c, maxRecords))
	if err != nil || got.loss != nil {
		t.Fatal(err, got.loss)
	}
	expect(t, got.requests, recs, sameRequest)
}

func fuzzResults(t *testing.T, cur *cursor, h chunkHead) {
	var codec resultCodec
	if codec.decode(cur, h) != nil {
		return
	}
	recs := codec.recs
	for i := range recs {
		for _, m := range recs[i].moments() {
			if *m != NoTime && (*m > time.Hour<<20 || *m < -time.Hour<<20) {
				return // times of 100,000 years wrap
			}
		}
		if len(recs[i].Gaps) > 1<<16 {
			return
		}
		for _, g := range recs[i].Gaps {
			if g.Wait != NoTime && (g.Wait > time.Hour<<20 || g.Wait < -time.Hour<<20) {
				return
			}
		}
	}
	got, err := readAll(file(t, content{results: recs}, maxRecords))
	if err != nil || got.loss != nil {
		t.Fatal(err, got.loss)
	}
	want := make([]Result, len(recs))
	for i := range recs {
		want[i] = recs[i]
		want[i].Connect = wholeMicros(recs[i].Connect)
		want[i].ServerQueue = wholeMicros(recs[i].ServerQueue)
		want[i].ServerPrefill = wholeMicros(recs[i].ServerPrefill)
		want[i].ServerDecode = wholeMicros(recs[i].ServerDecode)
	}
	expect(t, got.results, want, sameResult)
}

// A byte string column gives back what it was given, nil and empty apart.
func FuzzColumns(f *testing.F) {
	f.Add([]byte("12\n13\n\n-5"))
	f.Add([]byte("a\na\nb\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parts := bytes.Split(b, []byte("\n"))
		texts := make([]string, len(parts))
		ints := make([]int64, len(parts))
		for i, p := range parts {
			texts[i] = string(p)
			for _, c := range p {
				ints[i] = ints[i]<<7 ^ int64(c)
			}
		}
		var sc stringColumn
		got := make([]string, len(texts))
		if err := sc.decode(&cursor{b: sc.append(nil, texts)}, got); err != nil {
			t.Fatal(err)
		}
		var ic intColumn
		gotInts := make([]int64, len(ints))
		if err := ic.decode(&cursor{b: ic.append(nil, ints, 1)}, gotInts, 1); err != nil {
			t.Fatal(err)
		}
		for i := range texts {
			if got[i] != texts[i] || gotInts[i] != ints[i] {
				t.Fatalf("row %d: %q and %d, want %q and %d", i, got[i], gotInts[i], texts[i], ints[i])
			}
		}
	})
}
