package hashing_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"testing"

	"pgregory.net/rapid"

	"retrace/hashing"
)

// pythonScript hashes each line's JSON value with what vLLM calls. A value is
// written with each text as an object of its own, as json makes them.
const pythonScript = `
import sys, json, pickle, hashlib, cbor2, xxhash
def load(v):
    if isinstance(v, list):
        return tuple(load(x) for x in v)
    if isinstance(v, dict):
        return bytes.fromhex(v["bytes"])
    return v
for line in sys.stdin:
    v = load(json.loads(line))
    p = pickle.dumps(v, protocol=5)
    c = cbor2.dumps(v, canonical=True)
    print(p.hex() if len(p) < 1 << 16 else hashlib.sha256(p).hexdigest(), c.hex(),
          hashlib.sha256(p).hexdigest(), hashlib.sha256(c).hexdigest(),
          xxhash.xxh3_128_digest(p).hex(), xxhash.xxh3_128_digest(c).hex(),
          xxhash.xxh64_digest(c).hex(), xxhash.xxh3_64_digest(c).hex())
`

// TestAgainstPython compares with CPython's pickle, cbor2, hashlib and xxhash
// over random (bytes, tuple, extra keys).
func TestAgainstPython(t *testing.T) {
	if err := exec.Command("python3", "-c", "import cbor2, xxhash").Run(); err != nil {
		t.Skip("python3 has no cbor2 and xxhash")
	}
	var in bytes.Buffer
	var texts []string
	gen := rapid.Custom(func(rt *rapid.T) []any {
		parent := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(rt, "parent")
		var ints []any
		for _, id := range rapid.SliceOfN(anyToken(), 0, 40).Draw(rt, "tokens") {
			ints = append(ints, id)
		}
		return []any{parent, ints, anyValue(3).Draw(rt, "extra keys")}
	})
	values := make([][]any, 0, 1002)
	for seed := range 1000 {
		values = append(values, gen.Example(seed))
	}
	// Longer than one frame, by ids and by a text.
	long := make([]any, 20_000)
	for i := range long {
		long[i] = uint64(i) * 7
	}
	values = append(values, []any{make([]byte, 32), long, nil},
		[]any{make([]byte, 16), []any{uint64(1)}, []any{string(bytes.Repeat([]byte("x"), 70_000)), "y", "y", make([]byte, 1<<16)}})
	for _, v := range values {
		text, err := json.Marshal(jsonOf(v))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
		in.Write(append(text, '\n'))
	}
	cmd := exec.Command("python3", "-c", pythonScript)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(values) {
		t.Fatalf("%d lines, want %d", len(lines), len(values))
	}
	for i, line := range lines {
		want := bytes.Fields(line)
		value, err := hashing.ParseExtra([]byte(texts[i]))
		if err != nil {
			t.Fatalf("%.200s: %v", texts[i], err)
		}
		for k, alg := range []hashing.Algorithm{hashing.SHA256, hashing.SHA256CBOR, hashing.XXHash, hashing.XXHashCBOR, hashing.XXH64, hashing.XXH3} {
			data, err := alg.AppendValue(nil, value)
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(alg.AppendSum(nil, data)); got != string(want[2+k]) {
				t.Errorf("%v of %.200s: %s, want %s\nbytes %.400x\nwant  %.800s", alg, texts[i], got, want[2+k], data, want[k%2])
			}
		}
	}
}

// jsonOf writes a value as ParseExtra reads it.
func jsonOf(v any) any {
	switch v := v.(type) {
	case []byte:
		return map[string]string{"bytes": hex.EncodeToString(v)}
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = jsonOf(x)
		}
		return list
	case float64:
		return json.RawMessage(floatText(v))
	}
	return v
}

// floatText is a float that JSON readers take for one.
func floatText(f float64) string {
	text, err := json.Marshal(f)
	if err != nil {
		return "0.5" // JSON has no infinities
	}
	if !bytes.ContainsAny(text, ".e") {
		text = append(text, ".0"...)
	}
	return string(text)
}
