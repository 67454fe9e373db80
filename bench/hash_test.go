package main

import (
	"bytes"
	"os/exec"
	"testing"

	"retrace/hashing"
)

// One round here and in Python gives the same last digests, and as many
// passes: measureHash refuses to compare anything else.
func TestHashesAreTheSame(t *testing.T) {
	if exec.Command("python3", "-c", "import cbor2, xxhash").Run() != nil {
		t.Skip("python3 has no cbor2 and xxhash")
	}
	var stdout bytes.Buffer
	if err := measureHash(t.Context(), &options{stdout: &stdout, python: "python3", rounds: 1}); err != nil {
		t.Fatal(err)
	}
	for _, alg := range hashing.VLLM() {
		if !bytes.Contains(stdout.Bytes(), []byte("\n| "+alg.String()+" | ")) {
			t.Errorf("no row of %v in\n%s", alg, stdout.String())
		}
	}
}

func TestHashWithoutPython(t *testing.T) {
	var stdout bytes.Buffer
	err := measureHash(t.Context(), &options{stdout: &stdout, python: "no-such-python", rounds: 1})
	if want := "`no-such-python` has no cbor2 and xxhash to compare with.\n"; err != nil || stdout.String() != want {
		t.Errorf("%v, %q, want %q", err, stdout.String(), want)
	}
}

// 10,000 blocks in 2, 4 and 5 ms: the median is 2.5 M blocks/s, the best 5 M.
func TestBlockRates(t *testing.T) {
	if got, want := blockRates([]float64{0.005, 0.002, 0.004}), "2500000 (5000000)"; got != want {
		t.Errorf("block rates %q, want %q", got, want)
	}
}
