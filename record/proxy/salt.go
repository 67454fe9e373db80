package proxy

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// SaltBytes is the length of a salt: 256 bits.
const SaltBytes = 32

// Salt is the secret that keys all hashes of a trace. It prints as nothing.
type Salt [SaltBytes]byte

// String keeps a salt out of logs.
func (Salt) String() string { return "(salt)" }

// GoString keeps a salt out of logs.
func (Salt) GoString() string { return "(salt)" }

// NewSalt draws a salt.
func NewSalt() Salt {
	var s Salt
	_, _ = rand.Read(s[:]) // never fails
	return s
}

// errSalt has none of the text that it is about.
var errSalt = fmt.Errorf("found something else, expected %d hexadecimal digits", 2*SaltBytes)

// ParseSalt reads a salt of 64 hexadecimal digits. Its error does not tell them.
func ParseSalt(text []byte) (s Salt, err error) {
	text = bytes.TrimSpace(text)
	if len(text) != 2*SaltBytes {
		return Salt{}, errSalt
	}
	if _, err := hex.Decode(s[:], text); err != nil {
		return Salt{}, errSalt
	}
	return s, nil
}

// LoadSalt reads the salt in a file, which nobody but its owner may have access
// to; where there is no such file it makes one.
func LoadSalt(path string) (Salt, error) {
	s, err := readSalt(path)
	if errors.Is(err, fs.ErrNotExist) {
		s, err = makeSalt(path)
		if errors.Is(err, fs.ErrExist) { // another process was faster
			s, err = readSalt(path)
		}
	}
	if err != nil {
		return Salt{}, fmt.Errorf("salt file: %w", err)
	}
	return s, nil
}

func readSalt(path string) (Salt, error) {
	f, err := os.Open(path)
	if err != nil {
		return Salt{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Salt{}, err
	}
	if !info.Mode().IsRegular() {
		return Salt{}, fmt.Errorf("%s: found no regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Salt{}, fmt.Errorf("%s: found mode %04o, expected 0600: others may read it", path, mode)
	}
	text := make([]byte, 4*SaltBytes)
	n, _ := f.Read(text) // what could not be read is no salt
	s, err := ParseSalt(text[:n])
	if err != nil {
		return Salt{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func makeSalt(path string) (Salt, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return Salt{}, err
	}
	s := NewSalt()
	_, err = f.WriteString(hex.EncodeToString(s[:]) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return Salt{}, errors.Join(err, os.Remove(path))
	}
	return s, nil
}
