package analysis

import (
	"strings"
	"testing"
)

// Text and media are told apart only where a server does so.
func TestMediaTokensLine(t *testing.T) {
	for _, c := range []struct {
		input, media Total
		want         string
	}{
		{Total{900, 2}, Total{}, ""},
		{Total{900, 2}, Total{0, 2}, ""},
		{Total{900, 2}, Total{300, 2}, "Of the input: 300 tokens of images, audio and video, 600 of text or not told; the throughput counts both"},
		{Total{900, 2}, Total{300, 1}, "300 tokens of images, audio and video (1 of 2 requests tell it), 600 of"},
	} {
		var out strings.Builder
		rep := RunReport{Tokens: RunTokens{Input: c.input, Media: c.media}}
		p := &report{w: &out}
		rep.writeMedia(p)
		if got := out.String(); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%+v of %+v: got %q, want %q", c.media, c.input, got, c.want)
		}
	}
}
