package capture

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// SaltEnv is the environment variable that may hold the salt.
const SaltEnv = "RETRACE_SALT"

const saltBytes = 32

// Salt is the secret that hashes are keyed with. It never shows its key: not by
// any verb of package fmt, and in no error.
type Salt struct{ key *[saltBytes]byte }

// Format writes the same whatever the salt is.
func (Salt) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "salt") }

// NewSalt draws a salt at random.
func NewSalt() Salt {
	s := Salt{new([saltBytes]byte)}
	_, _ = rand.Read(s.key[:]) // never fails
	return s
}

// IsZero says that there is no salt.
func (s Salt) IsZero() bool { return s.key == nil }

// LoadSalt reads the salt from a file, which it makes, for its owner alone, where
// there is none. Without a path it takes the environment variable SaltEnv, and
// without that it draws one, which is then forgotten. The text is 64 hexadecimal
// digits.
func LoadSalt(path string) (Salt, error) {
	if path == "" {
		if text := os.Getenv(SaltEnv); text != "" {
			return parseSalt([]byte(text), "environment variable "+SaltEnv)
		}
		return NewSalt(), nil
	}
	s, err := readSalt(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s = NewSalt()
	err = s.create(path)
	if errors.Is(err, fs.ErrExist) { // made by another process meanwhile
		return readSalt(path)
	}
	return s, err
}

func readSalt(path string) (Salt, error) {
	f, err := os.Open(path)
	if err != nil {
		return Salt{}, fmt.Errorf("open salt file: %w", err)
	}
	defer f.Close() // read only: nothing can be lost
	info, err := f.Stat()
	if err != nil {
		return Salt{}, fmt.Errorf("read salt file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return Salt{}, fmt.Errorf("salt file %s: found mode %04o, expected one that only its owner may read, such as 0600", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*saltBytes+64))
	if err != nil {
		return Salt{}, fmt.Errorf("read salt file: %w", err)
	}
	return parseSalt(text, "salt file "+path)
}

// parseSalt reads the text of a salt; where names its place, for errors, which
// say nothing of the text but its length.
func parseSalt(text []byte, where string) (Salt, error) {
	text = bytes.TrimSpace(text)
	s := Salt{new([saltBytes]byte)}
	if len(text) != hex.EncodedLen(saltBytes) {
		return Salt{}, fmt.Errorf("%s: found %d bytes of text, expected %d hexadecimal digits", where, len(text), hex.EncodedLen(saltBytes))
	}
	if _, err := hex.Decode(s.key[:], text); err != nil {
		return Salt{}, fmt.Errorf("%s: found something else than hexadecimal digits, expected %d of these", where, hex.EncodedLen(saltBytes))
	}
	return s, nil
}

// create writes the salt under a temporary name and links it to its own, so that
// nobody ever reads half of it or replaces what is there.
func (s Salt) create(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".salt-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("make salt file: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(s.key[:]) + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path)
	}
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		return fmt.Errorf("make salt file %s: %w", path, err)
	}
	return nil
}

// mac is an HMAC-SHA-256 under the salt.
func (s Salt) mac() hash.Hash { return hmac.New(sha256.New, s.key[:]) }

// identityBytes is how much of a hash names an identity: two names of a file
// meet by chance once in 2^64.
const identityBytes = 16

// Identity is the hash that stands for a name; kind keeps the names of sessions,
// users and so on apart. No name stays none.
func (s Salt) Identity(kind, name string) string {
	if name == "" {
		return ""
	}
	m := s.mac()
	_, _ = io.WriteString(m, "identity\x00"+kind+"\x00"+name) // a hash never fails
	return hex.EncodeToString(m.Sum(nil)[:identityBytes])
}
