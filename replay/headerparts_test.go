package replay

import (
	"slices"
	"testing"
)

func TestHeaderParts(t *testing.T) {
	for value, want := range map[string][]string{
		"sk-0123456789":                      {"sk-0123456789"},
		"Bearer sk-0123456789":               {"sk-0123456789"},
		"Token 0123456789":                   {"0123456789"},
		"session=0123456789; path=/; a=b":    {"0123456789", "session=0123456789"},
		"Basic dXNlcjpodW50ZXIyaHVudGVyMg==": {"hunter2hunter2", "dXNlcjpodW50ZXIyaHVudGVyMg=="},
		"Basic bm9uZQ==":                     {"bm9uZQ=="}, // "none": no colon
		"application, chat":                  {"application"},
		"a b c":                              nil,
		"":                                   nil,
	} {
		if got := headerParts(value); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
