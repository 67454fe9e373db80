package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"retrace/record"
)

// input is what the FILE arguments turned out to be.
type input struct {
	names      []string  // as given
	paths      []string  // where to read them
	stdin      io.Reader // for the path "-" of a trace
	recordings bool
	temps      []string
}

// headSize is enough of a file to tell a container.
const headSize = 512

// sniff tells recordings from traces; a call is about the one or the other.
func sniff(args []string, stdin io.Reader) (*input, error) {
	in := &input{names: args, stdin: stdin}
	recordings := 0
	for _, name := range args {
		path, isRecording, err := in.look(name)
		if err != nil {
			in.close()
			return nil, err
		}
		in.paths = append(in.paths, path)
		if isRecording {
			recordings++
		}
	}
	if recordings > 0 && recordings < len(args) {
		in.close()
		return nil, usageError{errors.New("both traces and recordings are given: analyse them one after the other")}
	}
	in.recordings = recordings > 0
	return in, nil
}

// look finds out what one argument is. Standard input and compressed
// containers go through a temporary file.
func (in *input) look(name string) (path string, isRecording bool, err error) {
	if name == "-" {
		if path, err = in.spill(in.stdin); err != nil {
			return "", false, fmt.Errorf("read standard input: %w", err)
		}
	} else if path, err = in.unpack(name); err != nil {
		return "", false, err
	}
	isRecording, err = recording(name, path)
	if err != nil || isRecording || name != "-" {
		return path, isRecording, err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	in.stdin = f
	return "-", false, nil
}

// unpack gives the path of a file that is read as it is, or of the container
// within it where it is compressed with gzip.
func (in *input) unpack(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() // read only: nothing can be lost
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return name, err
	}
	zipped, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return name, nil // not gzip
	}
	content := bufio.NewReaderSize(zipped, headSize)
	head, _ := content.Peek(headSize)
	if !record.IsContainer(head) {
		return name, nil
	}
	path, err := in.spill(content)
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", name, err)
	}
	return path, nil
}

// spill copies a stream to a temporary file.
func (in *input) spill(r io.Reader) (string, error) {
	f, err := os.CreateTemp("", "trace-analyze-*")
	if err != nil {
		return "", err
	}
	in.temps = append(in.temps, f.Name())
	_, err = io.Copy(f, r)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// recording tells whether the file at path is a recording.
func recording(name, path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	head := make([]byte, headSize)
	n, err := io.ReadFull(f, head)
	_ = f.Close()
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || !record.IsContainer(head[:n]) {
		return false, nil // a directory, an empty file, a foreign format: formats knows
	}
	r, err := record.Open(path)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	return r.Header().Kind == record.KindRecording, r.Close()
}

// close removes the temporary files.
func (in *input) close() {
	if f, ok := in.stdin.(*os.File); ok && len(in.temps) > 0 {
		_ = f.Close()
	}
	for _, t := range in.temps {
		_ = os.Remove(t)
	}
}
