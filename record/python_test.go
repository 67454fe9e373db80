package record

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// python finds an interpreter that has what docs/retrace_reader.py imports.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on PATH: the Python reader is not tested")
	}
	if out, err := exec.Command(path, "-c", "import cbor2, zstandard").CombinedOutput(); err != nil {
		t.Skipf("python3 lacks cbor2 or zstandard: the Python reader is not tested: %s", bytes.TrimSpace(out))
	}
	return path
}

// readerScript prints what the Python reader yields, byte strings in hex.
const readerScript = `
import json, sys
sys.path.insert(0, "../docs")
import retrace_reader
for kind, value in retrace_reader.read(sys.argv[1]):
    if kind == "series":
        value["values"] = [v.hex() for v in value["values"]]
    print(json.dumps([kind, value], default=lambda b: b.hex()))
`

// The Python reader in docs/ reads what the Go reader reads.
func TestPythonReader(t *testing.T) {
	py := python(t)
	synth, _ := synthetic(5000, false)
	hashed, _ := synthetic(500, true)
	odd := rapid.Custom(func(t *rapid.T) (c content) {
		for i := range 40 {
			c.requests = append(c.requests, genRequest(t, i))
			c.results = append(c.results, genResult(t))
		}
		c.header.BlockSize = 16
		return c
	})
	cases := map[string]content{
		"every field": small(),
		"synthetic":   {header: Header{BlockSize: 512}, requests: synth},
		"hashed":      {header: Header{BlockSize: 512}, requests: hashed},
		"odd 1":       odd.Example(1), "odd 2": odd.Example(2), "odd 3": odd.Example(3),
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.trace")
			if err := os.WriteFile(path, file(t, c, 300), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(py, "-c", readerScript, path).Output()
			if err != nil {
				t.Fatalf("%v: %s", err, stderrOf(err))
			}
			comparePython(t, out, c)
		})
	}
}

// TestPythonReaderToHead: a reader that has seen enough is no failure.
func TestPythonReaderToHead(t *testing.T) {
	py := python(t)
	requests, _ := synthetic(5000, false)
	path := filepath.Join(t.TempDir(), "x.trace")
	if err := os.WriteFile(path, file(t, content{header: Header{BlockSize: 512}, requests: requests}, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(py, "../docs/retrace_reader.py", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v: %s", err, &stderr)
	}
}

func stderrOf(err error) []byte {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.Stderr
	}
	return nil
}

// comparePython compares JSON lines of the Python reader with what was written.
func comparePython(t *testing.T, out []byte, c content) {
	t.Helper()
	got := map[string][]any{}
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	for d.More() {
		var line [2]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		got[line[0].(string)] = append(got[line[0].(string)], line[1])
	}
	compareAll(t, "requests", got["requests"], c.requests, requestAsPython)
	compareAll(t, "results", got["results"], c.results, resultAsPython)
	if n := len(got["header"]); n != 1 {
		t.Errorf("%d headers", n)
	}
	if n := len(got["footer"]); n != 1 {
		t.Errorf("%d footers", n)
	}
	compareAll(t, "series", got["series"], c.series, func(s *Series) map[string]any {
		values := []string{} // as Python's float.hex prints those of small()
		for _, v := range s.Values {
			values = append(values, map[float64]string{1: "0x1.0000000000000p+0", math.Inf(1): "inf"}[v])
		}
		return map[string]any{"name": s.Name, "labels": s.Labels, "times": s.Times, "values": values}
	})
}

func compareAll[T any](t *testing.T, kind string, got []any, want []T, as func(*T) map[string]any) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d %s, want %d", len(got), kind, len(want))
	}
	for i := range want {
		b, err := json.Marshal(as(&want[i]))
		if err != nil {
			t.Fatal(err)
		}
		var w any
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&w); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got[i], w) {
			g, _ := json.Marshal(got[i])
			t.Fatalf("%s %d is\n%s, want\n%s", kind, i, g, b)
		}
	}
}

func orNull(v, null int64) any {
	if v == null {
		return nil
	}
	return v
}

func orNullTime(d time.Duration) any { return orNull(int64(d), int64(NoTime)) }

func hexOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return hex.EncodeToString(b)
}

func requestAsPython(r *Request) map[string]any {
	media, exceptions := []any{}, []any{}
	for _, m := range r.Media {
		media = append(media, map[string]any{"kind": m.Kind, "ref": m.Ref, "bytes": orNull(m.Bytes, Unknown)})
	}
	for _, e := range r.Exceptions {
		exceptions = append(exceptions, map[string]any{"field": e.Field, "raw": hexOrNull(e.Raw)})
	}
	blocks := r.Blocks
	if blocks == nil {
		blocks = []uint64{}
	}
	return map[string]any{
		"row": r.Row, "priority": r.Priority, "arrival": orNullTime(r.Arrival), "delay": orNullTime(r.Delay),
		"turn": r.Turn, "increment": r.Increment, "id": r.ID, "session": r.Session, "parent": r.Parent,
		"api": r.API, "model": r.Model, "kind": r.Kind, "body": hexOrNull(r.Body), "extra": hexOrNull(r.Extra),
		"observed": map[string]any{
			"status": r.Observed.Status, "latency": orNullTime(r.Observed.Latency), "failed": r.Observed.Failed,
			"input_tokens": orNull(r.Observed.InputTokens, Unknown), "output_tokens": orNull(r.Observed.OutputTokens, Unknown),
		},
		"media": media, "exceptions": exceptions, "blocks": blocks,
		"input_tokens": orNull(r.InputTokens, Unknown), "output_tokens": orNull(r.OutputTokens, Unknown),
	}
}

func resultAsPython(r *Result) map[string]any {
	choices := []any{}
	for _, d := range r.ChoiceFirsts {
		choices = append(choices, map[string]any{"first_output": orNullTime(d)})
	}
	tries := []any{}
	for _, y := range r.Tries {
		tries = append(tries, map[string]any{"sent": orNullTime(y.Sent), "wait": orNullTime(y.Wait), "status": y.Status, "class": y.Class})
	}
	gaps := []any{}
	for _, g := range r.Gaps {
		gaps = append(gaps, map[string]any{"wait": orNullTime(g.Wait), "tokens": orNull(g.Tokens, Unknown)})
	}
	return map[string]any{
		"id": r.ID, "session": r.Session, "model": r.Model, "kind": r.Kind, "class": r.Class, "reason": r.Reason,
		"error": r.Error, "finish_reason": r.FinishReason,
		"turn": r.Turn, "mark": r.Mark, "replica": r.Replica, "shard": r.Shard, "status": r.Status, "state": r.State,
		"reused": r.Reused, "attempts": r.Attempts, "bytes_sent": r.BytesSent, "bytes_received": r.BytesReceived,
		"wanted_input": orNull(r.WantedInput, Unknown), "wanted_output": orNull(r.WantedOutput, Unknown),
		"predicted_hit": orNull(r.PredictedHit, Unknown), "prompt_tokens": orNull(r.PromptTokens, Unknown),
		"completion_tokens": orNull(r.CompletionTokens, Unknown), "cached_tokens": orNull(r.CachedTokens, Unknown),
		"reasoning_tokens": orNull(r.ReasoningTokens, Unknown), "counted_output": orNull(r.CountedOutput, Unknown),
		"output": hexOrNull(r.Output), "connect": orNullTime(r.Connect), "gaps": gaps,
		"server_queue": orNullTime(r.ServerQueue), "server_prefill": orNullTime(r.ServerPrefill), "server_decode": orNullTime(r.ServerDecode),
		"choices":      choices,
		"tries":        tries,
		"media_tokens": orNull(r.MediaTokens, Unknown),
		"scheduled":    orNullTime(r.Scheduled), "granted": orNullTime(r.Granted), "sent": orNullTime(r.Sent),
		"first_byte": orNullTime(r.FirstByte), "first_output": orNullTime(r.FirstOutput),
		"first_content": orNullTime(r.FirstContent), "last_output": orNullTime(r.LastOutput), "end": orNullTime(r.End),
	}
}

// `zstd -d` reads a container and checks its frames; what comes out is a CBOR
// sequence for any reader of CBOR.
func TestZstdAndCBORRead(t *testing.T) {
	zstd, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("no zstd on PATH: not tested")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "x.trace"), filepath.Join(dir, "x.cbor")
	if err := os.WriteFile(in, file(t, small(), 2), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(zstd, "-d", "-q", "-f", in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	const script = `
import cbor2, sys
with open(sys.argv[1], "rb") as f:
    data = f.read()
    f.seek(0)
    kinds = []
    again = b""
    while f.tell() < len(data):
        item = cbor2.load(f)
        kinds.append(item[0])
        again += cbor2.dumps(item, canonical=True)
print(" ".join(kinds), again == data)
`
	got, err := exec.Command(python(t), "-c", script, out).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderrOf(err))
	}
	const want = "retrace requests requests requests results results series footer True"
	if strings.TrimSpace(string(got)) != want {
		t.Errorf("cbor2 reads %s, want %s", got, want)
	}
}
