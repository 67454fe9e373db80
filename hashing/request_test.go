package hashing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrace/hashing"
)

// chainOf is the event values of 100 tokens in blocks of 16, of a request.
func chainOf(t *testing.T, alg hashing.Algorithm, facts hashing.Request) []uint64 {
	t.Helper()
	c := mustChain(t, alg, 16, "0")
	if err := c.SetRequest(facts); err != nil {
		t.Fatal(err)
	}
	return c.Append(nil, upTo(100))
}

// The keys by hand, after vLLM 0.32's generate_block_hash_extra_keys.
func TestRequestKeys(t *testing.T) {
	facts := hashing.Request{
		Adapter: "a", AdapterPath: "/a", Salt: "s",
		Media:      []hashing.Media{{"img1", 10, 4}, {"img2", 14, 20}},
		Embeddings: [][]byte{{1}},
	}
	type c = hashing.Constant
	lora := []any{c("lora"), "a", "/a"}
	for block, want := range [][]any{
		{lora, []any{c("mm"), "img1", 10}, []any{c("mm"), "img2", 14}, []any{c("cache_salt"), "s"}, []any{c("prompt_embeds"), []byte{1}}},
		{lora, []any{c("mm"), "img2", -2}},
		{lora, []any{c("mm"), "img2", -18}},
		{lora},
	} {
		if diff := cmp.Diff(want, facts.Keys(block, 16)); diff != "" {
			t.Errorf("block %d, tagged: (-want +got)\n%s", block, diff)
		}
	}
	facts.Bare = true
	want := []any{"a", []any{"img1", 10}, []any{"img2", 14}, "s", []byte{1}}
	if diff := cmp.Diff(want, facts.Keys(0, 16)); diff != "" {
		t.Errorf("bare: (-want +got)\n%s", diff)
	}
	if got := (&hashing.Request{Salt: "s"}).Keys(1, 16); got != nil {
		t.Errorf("second block with a salt alone: %v, want None", got)
	}
}

// A chain that makes its keys is one whose keys are set for each block.
func TestSetRequestIsSetExtra(t *testing.T) {
	facts := hashing.Request{Adapter: "a", Salt: "s", Media: []hashing.Media{{"x", 20, 30}, {"x", 60, 1}}}
	for _, alg := range hashing.Algorithms() {
		c := mustChain(t, alg, 16, "0")
		var want []uint64
		for i := range 6 {
			if err := c.SetExtra(facts.Keys(i, 16)...); err != nil {
				t.Fatal(err)
			}
			want = c.Append(want, upTo(100)[16*i:16*i+16])
		}
		if got := chainOf(t, alg, facts); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", alg, got, want)
		}
	}
}

// Blocks before a placeholder are shared, those from it on are not; adapters
// and salts share nothing (CASES.md H09 and H10).
func TestWhatIsShared(t *testing.T) {
	image := func(id string) hashing.Request {
		return hashing.Request{Media: []hashing.Media{{id, 40, 10}}}
	}
	for _, alg := range hashing.VLLM() {
		for _, c := range []struct {
			what   string
			a, b   hashing.Request
			shared int
		}{
			{"the same image", image("one"), image("one"), 6},
			{"two images", image("one"), image("two"), 2},
			{"text and an image", hashing.Request{}, image("one"), 2},
			{"no adapter and one", hashing.Request{}, hashing.Request{Adapter: "a"}, 0},
			{"two adapters", hashing.Request{Adapter: "a"}, hashing.Request{Adapter: "b"}, 0},
			{"an adapter at two paths", hashing.Request{Adapter: "a", AdapterPath: "x"}, hashing.Request{Adapter: "a"}, 0},
			{"two salts", hashing.Request{Salt: "a"}, hashing.Request{Salt: "b"}, 0},
			{"an adapter and a salt of one name", hashing.Request{Salt: "a"}, hashing.Request{Adapter: "a"}, 0},
			{"the same, bare: first block", hashing.Request{Salt: "a", Bare: true}, hashing.Request{Adapter: "a", Bare: true}, 1},
		} {
			a, b := chainOf(t, alg, c.a), chainOf(t, alg, c.b)
			shared := 0
			for i := range a {
				if a[i] == b[i] {
					shared++
				}
			}
			if shared != c.shared {
				t.Errorf("%v, %s: %d blocks shared, want %d", alg, c.what, shared, c.shared)
			}
		}
	}
}

func TestSetRequestRefuses(t *testing.T) {
	for want, media := range map[string][]hashing.Media{
		"media 0: length: found 0, expected at least 1": {{"x", 1, 0}},
		"media 1: offset: found 3, expected at least 4": {{"x", 1, 3}, {"y", 3, 2}},
		"media 0: offset: found -1":                     {{"x", -1, 3}},
	} {
		err := mustChain(t, hashing.SHA256, 16, "").SetRequest(hashing.Request{Media: media})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", media, err, want)
		}
	}
	c := mustChain(t, hashing.SHA256, 16, "")
	c.Append(nil, upTo(1))
	if err := c.SetRequest(hashing.Request{}); err == nil {
		t.Error("a chain with tokens: no error")
	}
}

func ExampleChain_SetRequest() {
	c, err := hashing.NewChain(hashing.SHA256CBOR, 16, hashing.DefaultSeed)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = c.SetRequest(hashing.Request{
		Adapter: "support", AdapterPath: "/adapters/support",
		Media: []hashing.Media{{Identifier: "5f1c", Offset: 4, Length: 8}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(c.Append(nil, make([]uint32, 40))), c.Pending())
	// Output: 2 8
}
