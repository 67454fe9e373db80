package simserver

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page's table of faults has every kind, with its meaning.
func TestDocsListFaults(t *testing.T) {
	page, err := os.ReadFile("../../docs/simserver.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Faults")
	var kinds []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (.*) \\| .+ \\|$").FindAllStringSubmatch(section, -1) {
		kinds = append(kinds, m[1])
		if meaning := strings.ReplaceAll(m[2], "`", ""); meaning != FaultMeaning(m[1]) {
			t.Errorf("%s: the page says %q, the code %q", m[1], meaning, FaultMeaning(m[1]))
		}
	}
	slices.Sort(kinds)
	if fmt.Sprint(kinds) != fmt.Sprint(FaultKinds()) {
		t.Errorf("the page has %v, the code %v", kinds, FaultKinds())
	}
}
