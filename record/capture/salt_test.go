package capture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testSalt = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

func salt(t *testing.T) Salt {
	t.Helper()
	s, err := parseSalt([]byte(testSalt), "test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The file is made once, for its owner alone, and read again.
func TestSaltFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "salt")
	first, err := LoadSalt(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 65 {
		t.Errorf("mode %v, %d bytes, %v; want 0600 and 65", info.Mode(), info.Size(), err)
	}
	again, err := LoadSalt(path)
	if err != nil || *again.key != *first.key {
		t.Errorf("another salt, or %v", err)
	}
	other, err := LoadSalt(filepath.Join(t.TempDir(), "salt"))
	if err != nil || *other.key == *first.key {
		t.Errorf("the same salt in two files, or %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".salt*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSaltRefused(t *testing.T) {
	const secret = "feedfacefeedface"
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"readable by others", testSalt, 0o644, "found mode 0644"},
		{"readable by the group", testSalt, 0o640, "found mode 0640"},
		{"short", secret, 0o600, "found 16 bytes of text, expected 64 hexadecimal digits"},
		{"long", testSalt + secret, 0o600, "expected 64 hexadecimal digits"},
		{"no digits", strings.Repeat(secret, 3) + secret[:15] + "x", 0o600, "expected 64 of these"},
		{"empty", "", 0o600, "found 0 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "salt")
			if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := LoadSalt(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("found %v, want %q", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), testSalt)) {
				t.Errorf("the error has the salt: %v", err)
			}
		})
	}
}

func TestSaltFromEnvironment(t *testing.T) {
	t.Setenv(SaltEnv, testSalt)
	s, err := LoadSalt("")
	if err != nil || *s.key != *salt(t).key {
		t.Errorf("another salt, or %v", err)
	}
	t.Setenv(SaltEnv, "feedface")
	if _, err := LoadSalt(""); err == nil || strings.Contains(err.Error(), "feedface") {
		t.Errorf("found %v", err)
	}
	t.Setenv(SaltEnv, "")
	one, errOne := LoadSalt("")
	two, errTwo := LoadSalt("")
	if errOne != nil || errTwo != nil || *one.key == *two.key {
		t.Errorf("the same salt is drawn twice, or %v, %v", errOne, errTwo)
	}
}

func TestSaltPrintsNothing(t *testing.T) {
	s := salt(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got := fmt.Sprintf(verb, s); got != "salt" {
			t.Errorf("%s: found %q", verb, got)
		}
		if got := fmt.Sprintf(verb, struct{ S Salt }{s}); strings.Contains(got, "0a0b") || strings.Contains(got, "10 11") {
			t.Errorf("%s: found %q", verb, got)
		}
	}
}

// Python: hmac.new(bytes(range(32)), b"identity\0session\0alice", "sha256").hexdigest()[:32]
func TestIdentity(t *testing.T) {
	const want = "23bf96c711fba631a23a626ed5b43dc1"
	s := salt(t)
	if got := s.Identity("session", "alice"); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	if s.Identity("user", "alice") == want || s.Identity("session", "bob") == want || NewSalt().Identity("session", "alice") == want {
		t.Error("another kind, name or salt gives the same hash")
	}
	if got := s.Identity("session", ""); got != "" {
		t.Errorf("no name: found %q", got)
	}
}
