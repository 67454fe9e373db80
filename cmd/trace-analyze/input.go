package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"retrace/cmd/internal/cli"
	"retrace/formats"
	"retrace/record"
)

// input is what the FILE arguments turned out to be.
type input struct {
	names      []string  // as given
	paths      []string  // where to read them
	stdin      io.Reader // for the path "-" of a trace
	recordings bool
	temps      []string
	// interrupted says that whoever waits for a stream may go home.
	interrupted func() bool
}

// stdinName is how messages call standard input.
const stdinName = "standard input"

// headSize is enough of a file to tell a container.
const headSize = 512

// sniff tells recordings from traces; a call is about the one or the other.
func sniff(ctx context.Context, args []string, stdin io.Reader) (*input, error) {
	in := &input{names: args, stdin: stdin, interrupted: func() bool { return ctx.Err() != nil }}
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
		return nil, cli.UsageError{Err: errors.New("both traces and recordings are given: analyse them one after the other")}
	}
	in.recordings = recordings > 0
	return in, nil
}

// look finds out what one argument is. Standard input and compressed
// containers go through a temporary file.
func (in *input) look(name string) (path string, isRecording bool, err error) {
	path = name
	if name == "-" {
		if path, err = in.spill(in.stdin); err != nil {
			return "", false, fmt.Errorf("read standard input: %w", err)
		}
		name = stdinName
	}
	if path, err = in.unpack(name, path); err != nil {
		return "", false, err
	}
	isRecording, err = recording(name, path)
	if err != nil || isRecording || name != stdinName {
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
// within it where it is compressed once more.
func (in *input) unpack(name, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return path, err // of directories and pipes formats knows
	}
	f, err := formats.Decompress(path)
	if err != nil {
		return path, nil // formats says what is wrong
	}
	defer f.Close() // read only: nothing can be lost
	stored, err := containerHead(path)
	if err != nil || stored {
		return path, err
	}
	content := bufio.NewReaderSize(f, headSize)
	if head, _ := content.Peek(headSize); !record.IsContainer(head) {
		return path, nil
	}
	if path, err = in.spill(formats.CutOff{Reader: content}); err != nil {
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
	err = formats.CopyUntil(f, r, in.interrupted)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// containerHead says whether the file begins as a container does.
func containerHead(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close() // read only: nothing can be lost
	head := make([]byte, headSize)
	n, _ := io.ReadFull(f, head) // what cannot be read here is told by who reads it all
	return record.IsContainer(head[:n]), nil
}

// recording tells whether the file at path is a recording.
func recording(name, path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false, err // a directory, a pipe: formats knows
	}
	if is, err := containerHead(path); err != nil || !is {
		return false, err // an empty file, a foreign format: formats knows
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
