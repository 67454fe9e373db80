package record

import (
	"bytes"
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every field of a small file comes back, compared by reflect and so not by
// the writer's own idea of equality.
func TestEveryFieldComesBack(t *testing.T) {
	want := small()
	got, err := readAll(file(t, want, 2))
	if err != nil || got.loss != nil {
		t.Fatal(err, got.loss)
	}
	if !reflect.DeepEqual(got.header, want.header) {
		t.Errorf("header is %+v, want %+v", got.header, want.header)
	}
	if !reflect.DeepEqual(got.requests, want.requests) {
		t.Errorf("requests are %+v, want %+v", got.requests, want.requests)
	}
	if !reflect.DeepEqual(got.results, want.results) {
		t.Errorf("results are %+v, want %+v", got.results, want.results)
	}
	if !reflect.DeepEqual(got.series, want.series) {
		t.Errorf("series are %+v, want %+v", got.series, want.series)
	}
	want.footer.Requests, want.footer.Results, want.footer.Series = 6, 3, 1
	if !reflect.DeepEqual(got.footer, want.footer) {
		t.Errorf("footer is %+v, want %+v", got.footer, want.footer)
	}
}

// No field of the record types is forgotten: setting any one of them to
// something else shows in what is read, and the writer's comparison sees it.
func TestNoFieldIsForgotten(t *testing.T) {
	base := small().requests[3]
	for i := range reflect.TypeFor[Request]().NumField() {
		r := base
		f := reflect.ValueOf(&r).Elem().Field(i)
		f.Set(reflect.Zero(f.Type()))
		name := reflect.TypeFor[Request]().Field(i).Name
		if sameRequest(&base, &r) {
			t.Errorf("sameRequest does not look at %s", name)
		}
		got, err := readAll(file(t, content{header: Header{BlockSize: 16}, requests: []Request{r}}, 2))
		if err != nil || !reflect.DeepEqual(got.requests[0], r) {
			t.Errorf("%s: %v, %+v, want %+v", name, err, got.requests, r)
		}
	}
	full := NewResult()
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i+1) * 1e6)
		case reflect.Uint8:
			f.SetUint(uint64(i))
		case reflect.String:
			f.SetString(v.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		}
	}
	full.ChoiceFirsts = []time.Duration{1000, NoTime}
	full.Gaps, full.Output, full.Tries = []Gap{{1000, 2}}, []byte("out"), []Try{{1000, 2000, 429, ClassHTTP429}, {NoTime, NoTime, 0, ""}}
	for i := range v.NumField() {
		r := full
		f := reflect.ValueOf(&r).Elem().Field(i)
		f.Set(reflect.Zero(f.Type()))
		name := v.Type().Field(i).Name
		if sameResult(&full, &r) {
			t.Errorf("sameResult does not look at %s", name)
		}
		got, err := readAll(file(t, content{results: []Result{r}}, 2))
		if err != nil || !reflect.DeepEqual(got.results[0], r) {
			t.Errorf("%s: %v, %+v, want %+v", name, err, got.results, r)
		}
	}
}

func TestAnyRequestComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		var want content
		want.header.BlockSize = rapid.SampledFrom([]int{0, 1, 16, math.MaxInt}).Draw(t, "block size")
		for i := range n {
			want.requests = append(want.requests, genRequest(t, i))
		}
		chunk := rapid.SampledFrom([]int{1, 7, 4096}).Draw(t, "chunk")
		got, err := readAll(fileRapid(t, want, chunk))
		if err != nil || got.loss != nil {
			t.Fatalf("%v, %v", err, got.loss)
		}
		expect(t, got.requests, want.requests, sameRequest)
	})
}

func TestAnyResultComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want content
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			want.results = append(want.results, genResult(t))
		}
		got, err := readAll(fileRapid(t, want, 7))
		if err != nil || got.loss != nil {
			t.Fatalf("%v, %v", err, got.loss)
		}
		expect(t, got.results, want.results, sameResult)
	})
}

func fileRapid(t *rapid.T, c content, chunk int) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, c.header)
	if err != nil {
		t.Fatal(err)
	}
	w.chunk = chunk
	for i := range c.requests {
		if err := w.WriteRequest(&c.requests[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c.results {
		if err := w.WriteResult(&c.results[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(c.footer); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A caller may use a record's memory again at once.
func TestWriterKeepsNothingOfTheCaller(t *testing.T) {
	want := small()
	var b bytes.Buffer
	w, err := NewWriter(&b, want.header)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range want.requests {
		r.Blocks = bytesClone(r.Blocks)
		r.Body, r.Extra = bytesClone(r.Body), bytesClone(r.Extra)
		if err := w.WriteRequest(&r); err != nil {
			t.Fatal(err)
		}
		clear(r.Blocks)
		clear(r.Body)
		clear(r.Extra)
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	expect(t, got.requests, want.requests, sameRequest)
}

func bytesClone[T any](s []T) []T {
	if s == nil {
		return nil
	}
	return append([]T{}, s...)
}

// Finer parts than microseconds are cut, of gaps too; unknown moments stay so.
func TestResultTimesAreCutToMicroseconds(t *testing.T) {
	r := NewResult()
	r.Sent, r.End = 1999, -1999
	r.Gaps = []Gap{{Wait: 2999}}
	got, err := readAll(file(t, content{results: []Result{r}}, 1))
	if err != nil {
		t.Fatal(err)
	}
	g := got.results[0]
	if g.Sent != 1000 || g.End != -1000 || g.Gaps[0].Wait != 2000 || g.Scheduled != NoTime {
		t.Errorf("%+v", g)
	}
}

// The same records give the same bytes at every GOMAXPROCS, and however often
// the encoder has been used before.
func TestDeterminism(t *testing.T) {
	recs, _ := synthetic(9000, true)
	var first []byte
	for _, procs := range []int{1, 4, 1} {
		old := runtime.GOMAXPROCS(procs)
		var b bytes.Buffer
		encodeAll(t, &b, recs)
		runtime.GOMAXPROCS(old)
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Fatalf("GOMAXPROCS %d gives other bytes", procs)
		}
	}
}

// The real trace takes no more than the project promises, and comes back.
func TestMooncakeSize(t *testing.T) {
	recs, _ := mooncake(t)
	var b bytes.Buffer
	encodeAll(t, &b, recs)
	t.Logf("%d requests in %d bytes", len(recs), b.Len())
	if b.Len() > 62000 {
		t.Errorf("%d bytes, at most 62,000 are promised", b.Len())
	}
	got, err := readAll(b.Bytes())
	if err != nil || got.loss != nil {
		t.Fatal(err, got.loss)
	}
	expect(t, got.requests, recs, sameRequest)
}

// Large bodies close a chunk early; a record beyond all bounds is refused and
// the writer goes on.
func TestLargeRecords(t *testing.T) {
	var want content
	for i := range 20 {
		r := NewRequest()
		r.Row, r.Body = int64(i), bytes.Repeat([]byte{byte(i)}, 1<<20)
		want.requests = append(want.requests, r)
	}
	b := file(t, want, maxRecords)
	got, err := readAll(b)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, got.requests, want.requests, sameRequest)

	var out bytes.Buffer
	w, err := NewWriter(&out, Header{})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRequest()
	r.Body = make([]byte, maxRecordBytes+1)
	if err := w.WriteRequest(&r); err == nil {
		t.Error("a record of more than 64 MiB was taken")
	}
	r.Body = r.Body[:maxRecordBytes]
	if err := w.WriteRequest(&r); err != nil {
		t.Error(err)
	}
	if err := w.Close(Footer{}); err != nil {
		t.Error(err)
	}
	if got, err := readAll(out.Bytes()); err != nil || len(got.requests) != 1 || len(got.requests[0].Body) != maxRecordBytes {
		t.Error(err, len(got.requests))
	}
}

func TestSeriesNeedATimeForEachValue(t *testing.T) {
	w, err := NewWriter(&bytes.Buffer{}, Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteSeries(&Series{Name: "x", Times: []time.Duration{1}}); err == nil {
		t.Error("a series with 1 time and 0 values was taken")
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Footer{}); err == nil {
		t.Error("closed twice")
	}
	if err := w.WriteResult(&Result{}); err == nil {
		t.Error("written after Close")
	}
}
