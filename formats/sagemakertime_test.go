package formats

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestSageMakerTimes(t *testing.T) {
	const base = 1738555506 * time.Second
	for text, want := range map[string]time.Duration{
		"2025-02-03T04:05:06Z":                base,
		"2025-02-03T04:05:06":                 base,
		"2025-02-03 04:05:06":                 base,
		"2025-02-03T04:05:06.250Z":            base + 250*time.Millisecond,
		"2025-02-03T04:05:06.000000001Z":      base + 1,
		"2025-02-03T05:05:06+01:00":           base,
		"2025-02-02T23:05:06-0500":            base,
		"2025-02-03 04:05:06+00:00":           base,
		"1970-01-01T00:00:00Z":                0,
		"2262-01-01T00:00:00Z":                9214646400 * time.Second,
		"2024-03-10T02:30:00":                 1710037800 * time.Second, // no such hour in New York
		"1969-12-31T23:59:59Z":                -1,
		"2263-01-01T00:00:00Z":                -1,
		"2025-02-30T00:00:00Z":                -1,
		"2025-02-03T04:05:60Z":                -1,
		"1738555506":                          -1,
		"":                                    -1,
		"2025-02-03T04:05:06Z and more":       -1,
		"2025-02-03T04:05:06.Z":               -1,
		"2025-02-03T04:05:06 America/Chicago": -1,
	} {
		got, ok := parseWallTime(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, ok, want)
		}
	}
}

func TestFormatWallTime(t *testing.T) {
	const base = 1738555506 * time.Second
	for d, want := range map[time.Duration]string{
		base: "2025-02-03T04:05:06Z", base + 250*time.Millisecond: "2025-02-03T04:05:06.250Z",
		base + 1500: "2025-02-03T04:05:06.000001500Z", base + 2000: "2025-02-03T04:05:06.000002Z", 0: "1970-01-01T00:00:00Z",
	} {
		if got := formatWallTime(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
		if back, ok := parseWallTime(formatWallTime(d)); !ok || back != d {
			t.Errorf("%d: reads back as %d", d, back)
		}
	}
}

// TestZoneChild is run by TestSageMakerZone in another zone.
func TestZoneChild(t *testing.T) {
	path := os.Getenv("RETRACE_ZONE_INPUT")
	if path == "" {
		t.Skip("run by TestSageMakerZone")
	}
	if _, err := Convert([]string{path}, Options{}, Target{Path: path + ".trace"}); err != nil {
		t.Fatal(err)
	}
}

// Dates without a zone are UTC; the bytes of the trace do not depend on TZ.
func TestSageMakerZone(t *testing.T) {
	in := sideText("INPUT", `{"prompt":"hi"}`, "JSON")
	text := captureText(in, "", "2024-03-10T01:59:59") + captureText(in, "", "2024-03-10T02:30:00") +
		captureText(in, "", "2024-03-10T03:00:00+00:00")
	var first []byte
	for i, zone := range []string{"UTC", "America/New_York", "Asia/Kolkata"} {
		path := writeInput(t, "c.jsonl", text)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestZoneChild$")
		cmd.Env = append(os.Environ(), "TZ="+zone, "RETRACE_ZONE_INPUT="+path)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", zone, err, out)
		}
		trace, err := os.ReadFile(path + ".trace")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = trace
		}
		if !bytes.Equal(trace, first) {
			t.Errorf("under TZ=%s the trace is another", zone)
		}
		all, _ := importAll(t, []string{path + ".trace"}, Options{})
		if all[1].Arrival != 30*time.Minute+time.Second || all[2].Arrival != time.Hour+time.Second {
			t.Errorf("%s: arrivals %s, %s", zone, all[1].Arrival, all[2].Arrival)
		}
	}
}
