package formatstest

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"retrace/formats"
	"retrace/record"
)

// Suite is what a format gives to be tested.
type Suite struct {
	// Format is its name, Sample a small good file of at least two rows.
	Format string
	Sample []byte
	// Rows draws a whole source file: odd literals, absent, null and empty
	// fields, unknown fields, rows out of time order. Where it is nil (a second
	// sample of a format) what needs it is left out.
	Rows func(t *rapid.T) []byte
	// Bad is a row that cannot be read: a line to put behind the sample.
	Bad []byte
	// Diff says where an export differs from its source, "" where it does not:
	// DiffJSONLines, DiffCSV or the format's own. A format that is read only needs
	// none.
	Diff func(source, export []byte) string
	// Options are set for every import.
	Options formats.Options
}

// Run runs the whole suite.
func Run(t *testing.T, s Suite) {
	t.Helper()
	type check struct {
		name  string
		check func(*testing.T)
	}
	checks := []check{
		{"detect", s.detect},
		{"round trip", s.roundTrip},
		{"compression", s.compression},
		{"line ends", s.lineEnds},
		{"same bytes", s.sameBytes},
		{"empty", s.empty},
		{"cut anywhere", s.cutAnywhere},
		{"cut compressed", s.cutCompressed},
		{"bad row", s.badRow},
		{"round trip of odd rows", s.roundTripOdd},
		{"canonical JSON lines", s.canonicalLines},
		{"order", s.order},
	}
	if s.Rows == nil {
		checks = checks[:len(checks)-3]
	}
	if f, err := formats.Lookup(s.Format); err == nil && f.NewExporter == nil {
		checks = slices.DeleteFunc(checks, func(c check) bool { return strings.HasPrefix(c.name, "round trip") })
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (s Suite) detect(t *testing.T) {
	f, err := formats.Detect(formats.NewHead(s.Sample, true))
	if err != nil {
		t.Fatalf("detect the sample: %v", err)
	}
	if f.Name != s.Format {
		t.Fatalf("detected %s, want %s", f.Name, s.Format)
	}
}

// tb is what both testing.T and rapid.T can do.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// dir is a directory of one check, removed by its end.
func dir(t tb) (path string, remove func()) {
	path, err := os.MkdirTemp("", "formatstest-*")
	if err != nil {
		t.Fatalf("make directory: %v", err)
	}
	return path, func() { _ = os.RemoveAll(path) }
}

func write(t tb, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatalf("write: %v", err)
	}
	return path
}

func read(t tb, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return data
}

// convert converts one file and checks that no row went missing.
func (s Suite) convert(t tb, from, to, format string) *formats.Conversion {
	t.Helper()
	c, err := formats.Convert([]string{from}, s.Options, formats.Target{Path: to, Format: format})
	if err != nil {
		t.Fatalf("convert %s to %s: %v", filepath.Base(from), filepath.Base(to), err)
	}
	if err := c.Report.Check(); err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// export takes a source to a trace and back.
func (s Suite) export(t tb, source []byte) []byte {
	t.Helper()
	d, remove := dir(t)
	defer remove()
	in := write(t, filepath.Join(d, "in"), source)
	s.convert(t, in, filepath.Join(d, "a.trace"), "trace")
	back := filepath.Join(d, "back")
	s.convert(t, filepath.Join(d, "a.trace"), back, s.Format)
	return read(t, back)
}

func (s Suite) roundTrip(t *testing.T) {
	if diff := s.Diff(s.Sample, s.export(t, s.Sample)); diff != "" {
		t.Error(diff)
	}
}

func (s Suite) roundTripOdd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		source := s.Rows(rt)
		if diff := s.Diff(source, s.export(rt, source)); diff != "" {
			rt.Fatalf("%s\nsource:\n%s", diff, source)
		}
	})
}

// canonicalLines: a trace, its JSON lines and the trace made of these are one.
func (s Suite) canonicalLines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, remove := dir(rt)
		defer remove()
		a, b := filepath.Join(d, "a.trace"), filepath.Join(d, "b.trace")
		lines := filepath.Join(d, "a.jsonl")
		s.convert(rt, write(rt, filepath.Join(d, "in"), s.Rows(rt)), a, "trace")
		s.convert(rt, a, lines, "jsonl")
		s.convert(rt, lines, b, "trace")
		if !bytes.Equal(read(rt, a), read(rt, b)) {
			rt.Fatalf("the trace changed on its way through JSON lines:\n%s", read(rt, lines))
		}
	})
}

// Gzip compresses data as two members, as rotated logs are.
func Gzip(data []byte) []byte {
	var b bytes.Buffer
	for _, part := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
		z := gzip.NewWriter(&b)
		_, _ = z.Write(part) // a bytes.Buffer never fails
		_ = z.Close()
	}
	return b.Bytes()
}

// Zstd compresses data as two frames.
func Zstd(data []byte) []byte {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return enc.EncodeAll(data[len(data)/2:], enc.EncodeAll(data[:len(data)/2], nil))
}

// trace converts source and gives the bytes of the trace.
func (s Suite) trace(t tb, source []byte) []byte {
	t.Helper()
	d, remove := dir(t)
	defer remove()
	out := filepath.Join(d, "a.trace")
	s.convert(t, write(t, filepath.Join(d, "in.xyz"), source), out, "trace")
	return read(t, out)
}

func (s Suite) compression(t *testing.T) {
	plain := s.trace(t, s.Sample)
	if !bytes.Equal(plain, s.trace(t, Gzip(s.Sample))) {
		t.Error("gzip of the sample gives another trace")
	}
	if !bytes.Equal(plain, s.trace(t, Zstd(s.Sample))) {
		t.Error("zstd of the sample gives another trace")
	}
}

func (s Suite) lineEnds(t *testing.T) {
	plain := s.trace(t, s.Sample)
	unix := strings.ReplaceAll(string(s.Sample), "\r\n", "\n")
	for name, text := range map[string]string{
		"CRLF":                strings.ReplaceAll(unix, "\n", "\r\n"),
		"no final line feed":  strings.TrimRight(unix, "\n"),
		"blank lines":         unix + "\n\n",
		"a byte order mark":   "\xef\xbb\xbf" + unix,
		"blank line in front": strings.Replace(unix, "\n", "\n\n", 1),
	} {
		if !bytes.Equal(plain, s.trace(t, []byte(text))) {
			t.Errorf("%s: gives another trace", name)
		}
	}
}

func (s Suite) sameBytes(t *testing.T) {
	first := s.trace(t, s.Sample)
	for range 3 {
		if !bytes.Equal(first, s.trace(t, s.Sample)) {
			t.Fatal("the same input gives other bytes")
		}
	}
}

// order: requests come by arrival, ties by row, numbers without a gap.
func (s Suite) order(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, remove := dir(rt)
		defer remove()
		tr, err := formats.Open([]string{write(rt, filepath.Join(d, "in"), s.Rows(rt))}, s.Options)
		if err != nil {
			rt.Fatalf("open: %v", err)
		}
		defer tr.Close() // nothing to report
		last, lastRow, n := record.NoTime, int64(-1), int64(0)
		for r, err := range tr.Requests() {
			if err != nil {
				rt.Fatalf("read: %v", err)
			}
			n++
			if r.Arrival == record.NoTime {
				continue
			}
			if r.Arrival < last || r.Arrival == last && r.Row < lastRow {
				rt.Fatalf("row %d at %s comes after row %d at %s", r.Row, r.Arrival, lastRow, last)
			}
			last, lastRow = r.Arrival, r.Row
		}
		if rep := tr.Report(); rep.Kept != n || rep.Check() != nil {
			rt.Fatalf("%d requests of %d rows kept, %v", n, rep.Kept, rep.Check())
		}
	})
}

func (s Suite) empty(t *testing.T) {
	d := t.TempDir()
	for name, data := range map[string][]byte{"zero bytes": {}, "only blank lines": []byte("\n \n")} {
		out := filepath.Join(d, "out.trace")
		o := s.Options
		o.From = s.Format
		_, err := formats.Convert([]string{write(t, filepath.Join(d, "in"), data)}, o, formats.Target{Path: out})
		if err == nil {
			t.Errorf("%s: taken for a trace", name)
		}
		noFile(t, out)
	}
}

func noFile(t *testing.T, path string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if base := filepath.Base(f); base != "in" && !strings.HasPrefix(base, "in.") {
			t.Errorf("left behind: %s", base)
		}
	}
}

// cutAnywhere: a file cut at any byte never panics, and no row goes missing unseen.
func (s Suite) cutAnywhere(t *testing.T) {
	d := t.TempDir()
	o := s.Options
	o.BadLines, o.From = formats.Skip, s.Format
	for n := range s.Sample {
		tr, err := formats.Open([]string{write(t, filepath.Join(d, "in"), s.Sample[:n])}, o)
		if err != nil {
			continue
		}
		rep := tr.Report()
		if err := rep.Check(); err != nil {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// cutCompressed: a compressed file that is cut short is an error under fail,
// and a loss under skip.
func (s Suite) cutCompressed(t *testing.T) {
	d := t.TempDir()
	for name, z := range map[string][]byte{"gzip": Gzip(s.Sample), "zstd": Zstd(s.Sample)} {
		path := write(t, filepath.Join(d, "in"), z[:len(z)-3])
		out := filepath.Join(d, "out.trace")
		_, err := formats.Convert([]string{path}, s.Options, formats.Target{Path: out})
		if err == nil || !strings.Contains(err.Error(), "cut short") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s cut short: error %v, want one that says so and names the file", name, err)
		}
		noFile(t, out)
		o := s.Options
		o.BadLines = formats.Skip
		tr, err := formats.Open([]string{path}, o)
		if err != nil {
			continue // nothing could be read at all
		}
		if rep := tr.Report(); !rep.Lossy() {
			t.Errorf("%s cut short: no loss reported under skip", name)
		}
		_ = tr.Close()
	}
}

// badRow: fail stops, names the file and leaves no output; skip counts.
func (s Suite) badRow(t *testing.T) {
	d := t.TempDir()
	data := append(bytes.TrimRight(bytes.Clone(s.Sample), "\r\n"), '\n')
	path := write(t, filepath.Join(d, "in"), append(append(data, s.Bad...), '\n'))
	out := filepath.Join(d, "out.trace")
	_, err := formats.Convert([]string{path}, s.Options, formats.Target{Path: out})
	if err == nil || !strings.Contains(err.Error(), path+": line ") {
		t.Errorf("fail: error %v, want one that names file and line", err)
	}
	noFile(t, out)
	o := s.Options
	o.BadLines = formats.Skip
	c, err := formats.Convert([]string{path}, o, formats.Target{Path: out})
	if err != nil {
		t.Fatalf("skip: %v", err)
	}
	if n := c.Report.SkippedRows(); n != 1 || c.Report.Read != c.Report.Kept+1 {
		t.Errorf("skip: %d of %d rows skipped, %d kept; want 1 skipped", n, c.Report.Read, c.Report.Kept)
	}
}
