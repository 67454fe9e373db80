package formats_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"retrace/formats"
	"retrace/formats/formatstest"
	"retrace/record"
)

const row = `{"timestamp":5,"input_length":1,"output_length":1}` + "\n"

// T31: the container is told by its first bytes, whatever the name.
func TestNamesLie(t *testing.T) {
	for name, data := range map[string][]byte{
		"a.json": []byte(row), "b.csv": formatstest.Gzip([]byte(row + row)), "c.gz": []byte(row), "d.jsonl": formatstest.Zstd([]byte(row + row)),
	} {
		if got, err := openAll(t, []string{file(t, name, string(data))}, formats.Options{}); err != nil || len(got.reqs) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct{ data, say string }{
		"array.jsonl":  {"[" + strings.TrimSpace(row) + "]", "JSON array"},
		"pretty.jsonl": {"{\n  \"timestamp\": 5\n}", "over several lines"},
		"x.xz":         {"\xfd7zXZ\x00rest", "compressed with xz"},
		"x.zip":        {"PK\x03\x04rest", "compressed with zip"},
		"x.gz":         {"\x1f\x8b\x08", "gzip"},
	} {
		_, err := openAll(t, []string{file(t, name, c.data)}, formats.Options{})
		if err == nil {
			t.Errorf("%s is taken", name)
			continue
		}
		contains(t, err.Error(), c.say, name)
	}
}

// T34: a frame that asks for a window of 512 MiB gets a message, not the memory.
func TestZstdWindow(t *testing.T) {
	// Magic, descriptor without single segment, window of 2^(10+19) = 512 MiB,
	// one raw block of 1 byte, the last.
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 19 << 3, 0x09, 0x00, 0x00, '{'}
	_, err := openAll(t, []string{file(t, "long.zst", string(frame))}, formats.Options{From: "mooncake"})
	if err == nil {
		t.Fatal("taken")
	}
	contains(t, err.Error(), "window of more than 128 MiB", "zstd -dc --long=31", "long.zst")
}

// A window of 64 MiB, as --long=26 makes, is read.
func TestZstdLong(t *testing.T) {
	var b bytes.Buffer
	enc, err := zstd.NewWriter(&b, zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(enc, row)
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
	if got := openText(t, b.String(), formats.Options{}); len(got.reqs) != 1 {
		t.Errorf("%d requests", len(got.reqs))
	}
}

// T35: 500 small compressed files are read one after another, and nothing stays.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 500 {
		line := fmt.Sprintf(`{"timestamp":%d,"input_length":%d,"output_length":1}`+"\n", 1000-i, i)
		sub := filepath.Join(dir, fmt.Sprintf("%02d", i%10))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("%03d.zst", i)), formatstest.Zstd([]byte(line)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := runtime.NumGoroutine()
	got, err := openAll(t, []string{dir}, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.reqs) != 500 || got.reqs[0].InputTokens != 499 {
		t.Errorf("%d requests, the first of %d tokens", len(got.reqs), got.reqs[0].InputTokens)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines became %d", before, after)
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b/1.jsonl": row, "a/2.jsonl": row, ".hidden/x.jsonl": "junk", "a/.DS_Store": "junk", "a/empty.jsonl": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := openAll(t, []string{dir}, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.reqs) != 2 {
		t.Errorf("%d requests", len(got.reqs))
	}
	contains(t, strings.Join(got.report.Warnings, "\n"), "empty file: ", "empty.jsonl")
	if err := os.WriteFile(filepath.Join(dir, "c.csv"), []byte("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,1,1,2,API log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = openAll(t, []string{dir}, formats.Options{}); err == nil {
		t.Fatal("two formats in one trace are taken")
	}
	contains(t, err.Error(), "c.csv", "it looks like burstgpt, the first input like mooncake")
	if _, err = openAll(t, []string{t.TempDir()}, formats.Options{}); err == nil {
		t.Fatal("an empty directory is taken")
	}
}

func TestStdin(t *testing.T) {
	for name, data := range map[string][]byte{"plain": []byte(row), "zstd": formatstest.Zstd([]byte(row))} {
		temp := t.TempDir()
		got, err := openAll(t, []string{"-"}, formats.Options{Stdin: bytes.NewReader(data), TempDir: temp})
		if err != nil || len(got.reqs) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) != 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
	for name, paths := range map[string][]string{"twice": {"-", "-"}, "none": {"-"}} {
		o := formats.Options{}
		if name == "twice" {
			o.Stdin = strings.NewReader(row)
		}
		if _, err := openAll(t, paths, o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A link to a directory, links in it, and a pipe are read as what they lead to.
func TestLinksAndPipes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file(t, "x.jsonl", row), filepath.Join(dir, "real", "x.jsonl")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	if got, err := openAll(t, []string{link}, formats.Options{}); err != nil || len(got.reqs) != 1 {
		t.Errorf("link: %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.WriteString(row)
		_ = w.Close()
	}()
	defer r.Close()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skipf("no /dev/fd here: %v", err)
	}
	if got, err := openAll(t, []string{name}, formats.Options{}); err != nil || len(got.reqs) != 1 {
		t.Errorf("pipe: %v", err)
	}
}

// A canonical trace that was compressed once more is one all the same; flags
// that do not apply to it are said to be ignored.
func TestCompressedTrace(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a.trace")
	if _, err := formats.Convert([]string{file(t, "in", row)}, formats.Options{}, formats.Target{Path: out}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for name, z := range map[string][]byte{"gzip": formatstest.Gzip(data), "zstd": formatstest.Zstd(data)} {
		got, err := openAll(t, []string{file(t, "a.trace", string(z))}, formats.Options{BlockSize: 16, Turns: "full"})
		if err != nil || len(got.reqs) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		contains(t, strings.Join(got.report.Warnings, "\n"), "--block-size does not apply", "--turns does not apply")
	}
}

// A canonical file that is cut short gives its whole chunks, and the loss.
func TestCutTrace(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a.trace")
	if _, err := formats.Convert([]string{file(t, "in", manyRows(9000, row))}, formats.Options{}, formats.Target{Path: out}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := openAll(t, []string{file(t, "cut.trace", string(data[:len(data)/2]))}, formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.reqs); n == 0 || n%4096 != 0 || !got.report.Lossy() {
		t.Errorf("%d requests, losses %v", n, got.report.Losses)
	}
	contains(t, strings.Join(got.report.Losses, "\n"), "cut.trace")
}

// A recording holds no requests to convert.
func TestRecordingRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.rec")
	w, err := record.CreateRecording(path, record.Header{Kind: record.KindRecording}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(record.Footer{}); err != nil {
		t.Fatal(err)
	}
	if _, err = openAll(t, []string{path}, formats.Options{}); err == nil {
		t.Fatal("taken")
	}
	contains(t, err.Error(), "a.rec", "it is a recording")
}

// Lines of several MiB are read; detection sees the start of the first one.
func TestLongLines(t *testing.T) {
	text := strings.Repeat("x", 5<<20)
	got := openText(t, `{"timestamp":0,"output_length":1,"text_input":"`+text+"\"}\n"+row, formats.Options{})
	if len(got.reqs) != 2 || len(got.reqs[0].Body) < len(text) {
		t.Errorf("%d requests, body of %d bytes", len(got.reqs), len(got.reqs[0].Body))
	}
}

func TestDetectFits(t *testing.T) {
	for _, c := range []struct{ from, text, say string }{
		{"mooncake", `{"chat_id":1,"parent_chat_id":-1,"timestamp":1.0,"input_length":1,"output_length":1,"type":"text","turn":1,"hash_ids":[1]}`,
			"--from mooncake does not fit: it looks like bailian"},
		{"bailian", row, "--from bailian does not fit: it looks like mooncake"},
		{"mooncake", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "--from mooncake does not fit: this is a Git LFS pointer"},
		{"", `{"colour":"red"}`, "its first row has the fields colour"},
		{"", "hello\n", `it starts with "hello"`},
	} {
		contains(t, refused(t, c.text, formats.Options{From: c.from}), c.say)
	}
}

// The first rows may be broken: detection looks at more than one.
func TestDetectBehindBadRow(t *testing.T) {
	got := openText(t, "{broken\n\n"+row, formats.Options{BadLines: formats.Skip})
	if len(got.reqs) != 1 || got.report.SkippedRows() != 1 {
		t.Errorf("%d requests, %d skipped", len(got.reqs), got.report.SkippedRows())
	}
}
