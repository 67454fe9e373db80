package prompt

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// childEnv makes a run of this test print prompts in a shuffled order.
const childEnv = "RETRACE_PROMPT_CHILD"

// TestOtherProcess is case H05: two processes, with GOMAXPROCS of their own,
// that go through the ids in orders of their own make the same bytes.
func TestOtherProcess(t *testing.T) {
	if seed := os.Getenv(childEnv); seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		printPrompts(os.Stdout, n)
		return
	}
	want := promptsOf(t, 1)
	if len(want) != processPrompts {
		t.Fatalf("found %d prompts, want %d", len(want), processPrompts)
	}
	for id, text := range promptsOf(t, 2) {
		if text != want[id] {
			t.Errorf("prompt %s: %q in one process, %q in another", id, want[id], text)
		}
	}
	m := newMaker(t, Config{Namespace: "processes", Salt: "s", BlockSize: 32})
	for i := range processPrompts {
		if got := string(m.AppendTokens(m.AppendText(nil, processPrompt(i)), processPrompt(i))); got != want[strconv.Itoa(i)] {
			t.Errorf("prompt %d: %q here, %q in another process", i, got, want[strconv.Itoa(i)])
		}
	}
}

// processPrompts is how many prompts the processes make.
const processPrompts = 200

func processPrompt(i int) Prompt {
	return NewPrompt(Segment{Key: uint64(i) * 7919, N: 32}, Segment{Key: uint64(i), N: 5, Kind: Tail})
}

func printPrompts(w io.Writer, seed uint64) {
	m, err := New(Config{Namespace: "processes", Salt: "s", BlockSize: 32})
	if err != nil {
		panic(err)
	}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(processPrompts) {
		fmt.Fprintf(w, "prompt %d %s\n", i, m.AppendTokens(m.AppendText(nil, processPrompt(i)), processPrompt(i)))
	}
}

// promptsOf runs this test in a process of its own.
func promptsOf(t *testing.T, seed int) map[string]string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childEnv, seed), fmt.Sprintf("GOMAXPROCS=%d", seed))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	prompts := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "prompt "); found {
			id, text, _ := strings.Cut(rest, " ")
			prompts[id] = text
		}
	}
	return prompts
}
