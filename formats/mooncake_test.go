package formats_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retrace/formats/formatstest"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../fixtures/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMooncakeConformance(t *testing.T) {
	suite := formatstest.Suite{
		Format: "mooncake", Sample: fixture(t, "mooncake_sessions.jsonl"), Rows: mooncakeRows,
		Bad:  []byte(`{"timestamp":1,"input_length":-4,"output_length":2}`),
		Diff: formatstest.DiffJSONLines,
	}
	t.Run("sessions", func(t *testing.T) { formatstest.Run(t, suite) })
	suite.Sample, suite.Rows = fixture(t, "mooncake_sample.jsonl"), nil
	t.Run("sample", func(t *testing.T) { formatstest.Run(t, suite) })
}

// spell draws one of the ways to write the integer n that read back as n.
func spell(t *rapid.T, n int64) string {
	s := strconv.FormatInt(n, 10)
	switch rapid.IntRange(0, 7).Draw(t, "spelling") {
	case 0:
		return s + ".0"
	case 1:
		return s + "e0"
	case 2:
		if n > 0 {
			return s + "0E-1"
		}
	case 3:
		return s + ".000e+0"
	case 4:
		if n == 0 {
			return "-0"
		}
	}
	return s
}

// oddTimes are literals that a float64 or an int64 of nanoseconds loses.
var oddTimes = []string{"61.11400000001", "5.0", "1e3", "1E+2", "-0", "0.0", "-0.0e5", "27.482", "0.1234567890123", "12e-7"}

func drawTime(t *rapid.T) string {
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		return rapid.SampledFrom(oddTimes).Draw(t, "time")
	}
	return spell(t, rapid.Int64Range(0, 50_000).Draw(t, "ms"))
}

// oddValues stand in unknown fields; all have to come back as they are.
var oddValues = []string{
	`null`, `[]`, `{}`, `""`, `true`, `1e400`, `-0`, `18446744073709551616`, `"\ud800"`, `"\udc00x"`, `"a\u0000b"`, `"\/"`,
	`{"b":1.0,"a":[{"x":null}]}`, `"😀"`, `"\ud83d\ude00"`, `[1, 2 , 3.50]`, `"</script>"`, `"é"`, `"\u2028"`,
}

func drawIDs(t *rapid.T, n int64) string {
	ids := make([]string, n)
	for i := range ids {
		switch rapid.IntRange(0, 9).Draw(t, "id kind") {
		case 0:
			ids[i] = strconv.FormatUint(rapid.Uint64().Draw(t, "id"), 10)
		case 1:
			ids[i] = "18446744073709551615"
		case 2:
			ids[i] = spell(t, int64(i))
		default:
			ids[i] = strconv.Itoa(i)
		}
	}
	return "[" + strings.Join(ids, rapid.SampledFrom([]string{",", ", ", " ,\t"}).Draw(t, "comma")) + "]"
}

// mooncakeRows draws a file of every dialect.
func mooncakeRows(t *rapid.T) []byte {
	var b strings.Builder
	seen := map[string]bool{}
	for range rapid.IntRange(1, 12).Draw(t, "rows") {
		b.WriteString(mooncakeRow(t, seen))
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

func mooncakeRow(t *rapid.T, seen map[string]bool) string {
	var f []string
	add := func(key, raw string) {
		f = append(f, strconv.Quote(key)+rapid.SampledFrom([]string{":", ": "}).Draw(t, "colon")+raw)
	}
	session := rapid.SampledFrom([]string{"", "", "s1", "s2"}).Draw(t, "session")
	if session != "" {
		add("session_id", rapid.SampledFrom([]string{strconv.Quote(session), `"\u0073` + session[1:] + `"`}).Draw(t, "spelling of it"))
	} else if rapid.IntRange(0, 5).Draw(t, "no session") == 0 {
		add("session_id", rapid.SampledFrom([]string{`null`, `""`}).Draw(t, "none"))
	}
	if seen[session] && session != "" && rapid.Bool().Draw(t, "delay") {
		add("delay", drawTime(t))
		if rapid.IntRange(0, 3).Draw(t, "null time") == 0 {
			add("timestamp", "null")
		}
	} else {
		add("timestamp", drawTime(t))
	}
	seen[session] = true
	mooncakeInput(t, add)
	switch rapid.IntRange(0, 4).Draw(t, "output") {
	case 0:
		add("output_length", "null")
	case 1: // absent
	default:
		add("output_length", spell(t, rapid.Int64Range(0, 3000).Draw(t, "tokens")))
	}
	for _, k := range []string{"group_id", "priority", "x\u00e9\"", "model"} {
		if rapid.IntRange(0, 5).Draw(t, "has "+k) == 0 {
			add(k, rapid.SampledFrom(append(oddValues, "3", "-4")).Draw(t, k))
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "odd key") == 0 {
		f = append(f, `"\ud800k":1,"\ud801k":2`)
	}
	return "{" + strings.Join(rapid.Permutation(f).Draw(t, "order"), ",") + "}"
}

func mooncakeInput(t *rapid.T, add func(key, raw string)) {
	text := rapid.SampledFrom([]string{`"hello"`, `""`, `"\ud800"`, `"a\nb"`}).Draw(t, "text")
	switch rapid.IntRange(0, 7).Draw(t, "input kind") {
	case 0:
		add("text_input", text)
		if rapid.Bool().Draw(t, "extra") {
			add("extra", rapid.SampledFrom([]string{`{}`, `null`, `{"temperature":0.0}`, `{"prompt":"other","max_tokens":1}`}).Draw(t, "extra"))
		}
	case 1:
		add("messages", fmt.Sprintf(`[{"role":"user","content":%s}]`, text))
		if rapid.Bool().Draw(t, "tools") {
			add("tools", rapid.SampledFrom([]string{`[]`, `null`, `[{"type":"function"}]`}).Draw(t, "tools"))
		}
	case 2:
		add("payload", rapid.SampledFrom([]string{
			`{"model":"m","prompt":"x"}`, `{ "messages" : [] }`, `{}`, `{"input":[1.0]}`, `{"prompt":[1,2,3],"stream":true}`,
		}).Draw(t, "payload"))
	default:
		n := rapid.Int64Range(0, 3000).Draw(t, "input")
		add("input_length", spell(t, n))
		switch rapid.IntRange(0, 5).Draw(t, "ids") {
		case 0:
			add("hash_ids", "[]")
		case 1:
			add("hash_ids", "null")
		case 2: // absent
		default:
			add("hash_ids", drawIDs(t, (n+511)/512))
		}
		if rapid.IntRange(0, 5).Draw(t, "null kinds") == 0 {
			add("text_input", "null")
			add("tools", "[]")
		}
	}
}
