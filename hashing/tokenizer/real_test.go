package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// realEnv names a folder with public tokenizers for the tests here: each in a
// folder of its own, as tokenizer.json or models/tokenizer.json. CONTRIBUTING.md
// says where they are from.
const realEnv = "RETRACE_TOKENIZERS"

// realTokenizers are the files of the folder, by name; without it the test is
// skipped.
func realTokenizers(t testing.TB) map[string]string {
	t.Helper()
	dir := os.Getenv(realEnv)
	if dir == "" {
		t.Skip(realEnv + " names no folder of public tokenizers")
	}
	files := map[string]string{}
	for _, pattern := range []string{"*/tokenizer.json", "*/models/tokenizer.json"} {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			name, _, _ := strings.Cut(strings.TrimPrefix(f, dir+string(filepath.Separator)), string(filepath.Separator))
			files[name] = f
		}
	}
	if len(files) == 0 {
		t.Fatalf("%s=%s: found no */tokenizer.json there", realEnv, dir)
	}
	return files
}

// answer is what the reference says of a text.
type answer struct {
	IDs    []uint32 `json:"ids"`
	Prompt []uint32 `json:"prompt"`
	Text   string   `json:"text"`
}

// reference encodes the texts with Hugging Face's library, or skips the test
// where there is none.
func reference(t *testing.T, path string, texts []string) []answer {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	if exec.Command(python, "-c", "import tokenizers").Run() != nil {
		t.Skip("python3 has no tokenizers module")
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/reference.py", path)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers []answer
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

// scripts are words in many writings, and what else tells tokenizers apart.
var scripts = []string{
	"hello", "World", "HTTPServer", "camelCase", "don't", "WE'LL", "it'S", "'s", "naïve", "cafe\u0301", "e\u0301\u0323", "Å", "ﬁ", "ſ",
	"привет", "ПРИВЕТ", "Ελλάδα", "שלום", "مرحبا", "مَرْحَبًا", "नमस्ते", "বাংলা", "ไทยแลนด์", "မြန်မာ", "ქართული", "հայերեն", "አማርኛ",
	"日本語", "こんにちは", "カタカナ", "中文字符", "한국어", "각", "Tiếng Việt", "ǅ", "ʰ", "ª", "Ⅳ", "½", "٣٤٥", "१२३", "１２３",
	"0", "12", "123", "1234567890", "3.14159", "1e-9", "0x7fff", "👍", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "✈︎", "∑", "€", "–", "…", "«»", "\u200b", "\u00ad",
	" ", "  ", "   ", "        ", "\n", "\n\n", "\n\n\n", "\r\n", "\r", "\t", "\t\t\t", " \n ", "\u00a0", "\u2003", "\u3000", "\u0085", "\v", "\f",
	"\x00", "\x01", "\x1b[0m", "\x7f", "\ufeff", "\ufffd", "▁", "▁▁", "Ġ", "Ċ", "<", ">", "</", "> </", "_", "__init__", "'", "''", "\"", "/", "//", "\\", "...", "?!", "()", "{}", "[", "]", "#", "@",
	"func main() {\n\tfmt.Println(\"hi\")\n}\n", "for (int i = 0; i < n; ++i)", "<div class=\"a\">", "SELECT * FROM t;", "x += y**2", "https://example.org/a?b=c&d=%20",
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "<bos>", "<eos>", "<0x0A>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<think>", "</think>", "[INST]", "<start_of_turn>", "<table>", "<|",
}

// makeTexts draws texts: each word alone, mixes of them, and random runes.
func makeTexts(n int) []string {
	r := rand.New(rand.NewPCG(5, 10))
	texts := append([]string{""}, scripts...)
	for len(texts) < n {
		var b strings.Builder
		parts := 1 + r.IntN(12)
		for range parts {
			switch r.IntN(8) {
			case 0:
				b.WriteRune(randomRune(r))
			case 1, 2, 3:
				b.WriteString(scripts[r.IntN(len(scripts))])
			default:
				b.WriteString(" " + scripts[r.IntN(len(scripts))])
			}
		}
		texts = append(texts, b.String())
	}
	return texts
}

// randomRune is any that Unicode 15 has assigned, which is what Go's tables
// know, the lower ones more often. The reference knows some newer ones.
func randomRune(r *rand.Rand) rune {
	for {
		c := rune(r.IntN(0x110000 >> r.IntN(12)))
		if utf8.ValidRune(c) && unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co) {
			return c
		}
	}
}

// TestRealTokenizersAgree holds the ids of 4,000 texts to those of Hugging
// Face's library, for each tokenizer there is.
func TestRealTokenizersAgree(t *testing.T) {
	for name, path := range realTokenizers(t) {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			tok, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("loaded in %v", time.Since(start).Round(time.Millisecond))
			texts := makeTexts(4000)
			bad := 0
			for i, want := range reference(t, path, texts) {
				if err := agree(tok, texts[i], want); err != nil {
					if bad++; bad <= 10 {
						t.Error(err)
					}
				}
			}
			if bad > 0 {
				t.Errorf("%d of %d texts differ", bad, len(texts))
			}
		})
	}
}

// agree compares what the tokenizer makes of a text with the reference.
func agree(tok *Tokenizer, text string, want answer) error {
	ids := tok.Encode(nil, text)
	if !slices.Equal(ids, want.IDs) {
		return fmt.Errorf("%q: ids %v, want %v", text, ids, want.IDs)
	}
	if prompt := tok.EncodePrompt(nil, text); !slices.Equal(prompt, want.Prompt) {
		return fmt.Errorf("%q: ids as a prompt %v, want %v", text, prompt, want.Prompt)
	}
	// The reference writes U+FFFD for broken runes, sometimes one a byte.
	decoded, err := tok.Decode(nil, ids)
	if err != nil {
		return err
	}
	if utf8.Valid(decoded) && string(decoded) != want.Text {
		return fmt.Errorf("%q: decodes to %q, want %q", text, decoded, want.Text)
	}
	return nil
}

// BenchmarkReal encodes pieces of 4 KB of the module's own text.
func BenchmarkReal(b *testing.B) {
	var text strings.Builder
	for _, pattern := range []string{"../../docs/*.md", "../../replay/*.go", "../../formats/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				b.Fatal(err)
			}
			text.Write(data)
		}
	}
	pieces := slices.Collect(chunks(text.String(), 4096))
	for name, path := range realTokenizers(b) {
		b.Run(name, func(b *testing.B) {
			tok, err := Load(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(text.Len()))
			tokens := 0
			var ids []uint32
			for b.Loop() {
				for _, p := range pieces {
					ids = tok.Encode(ids[:0], p)
					tokens += len(ids)
				}
			}
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds()/1e6, "Mtokens/s")
		})
	}
}

// chunks cuts a text into parts of about n bytes.
func chunks(text string, n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			end := min(n, len(text))
			for end < len(text) && !utf8.RuneStart(text[end]) {
				end++
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}
