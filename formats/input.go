package formats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds what a zstd frame may ask us to keep: what `zstd --ultra
// -22` and `--long=27` need.
const maxWindow = 128 << 20

// input is one file of an import: what messages call it and where it is.
type input struct {
	name, path string
	// inDir says that it was found in a directory, not named.
	inDir bool
}

// inputs is the list of files, with the temporary ones that have to be removed
// in the end.
type inputs struct {
	files   []input
	spools  []string
	tempDir string
	stdin   bool
	// interrupted is asked, while a stream is waited for, whether to stop.
	interrupted func() bool
}

// listInputs resolves the paths: directories are walked in order of names;
// standard input and pipes are copied to temporary files, as imports may read
// twice.
func listInputs(paths []string, o Options) (*inputs, error) {
	in := inputs{tempDir: o.TempDir, interrupted: o.Interrupted}
	for _, p := range paths {
		var err error
		if p == "-" {
			err = in.addStdin(o.Stdin)
		} else {
			err = in.addPath(p)
		}
		if err != nil {
			in.close()
			return nil, err
		}
	}
	if len(in.files) == 0 {
		return nil, errors.New("no input files")
	}
	return &in, nil
}

func (in *inputs) close() {
	for _, path := range in.spools {
		_ = os.Remove(path)
	}
}

func (in *inputs) addStdin(stdin io.Reader) error {
	switch {
	case in.stdin:
		return errors.New("read standard input: named twice")
	case stdin == nil:
		return errors.New("read standard input: there is none")
	}
	in.stdin = true
	return in.addSpool("standard input", stdin)
}

// addSpool adds a stream, copied to a temporary file.
func (in *inputs) addSpool(name string, from io.Reader) error {
	path, err := in.spool(name, from)
	if err == nil {
		in.files = append(in.files, input{name: name, path: path})
	}
	return err
}

// spool copies a stream to a temporary file.
func (in *inputs) spool(name string, from io.Reader) (string, error) {
	f, err := os.CreateTemp(in.tempDir, "retrace-input-*")
	if err != nil {
		return "", fmt.Errorf("spool %s: %w", name, err)
	}
	in.spools = append(in.spools, f.Name())
	err = CopyUntil(f, from, in.interrupted)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("spool %s: %w", name, err)
	}
	return f.Name(), nil
}

// unwrap spools what the files' decompression gives: canonical traces that were
// compressed once more. Of one that is cut short, what there is: its reader
// finds what is missing.
func (in *inputs) unwrap() error {
	for i, f := range in.files {
		o, err := f.open()
		if err != nil {
			return err
		}
		path, err := in.spool(f.name, CutOff{o})
		if err = errors.Join(err, o.close()); err != nil {
			return err
		}
		in.files[i].path = path
	}
	return nil
}

func (in *inputs) addPath(p string) error {
	info, err := os.Stat(p)
	switch {
	case err != nil:
		return fmt.Errorf("open input: %w", err)
	case info.IsDir():
		return in.addDir(p)
	case info.Mode().IsRegular():
		in.files = append(in.files, input{name: p, path: p})
		return nil
	}
	pipe, err := os.Open(p)
	if err != nil {
		return fmt.Errorf("open input: %w", err)
	}
	defer pipe.Close() // read only: nothing can be lost
	return in.addSpool(p, pipe)
}

// addDir adds the files below a directory in the order of their names, but for
// hidden ones.
func (in *inputs) addDir(p string) error {
	before := len(in.files)
	root := filepath.Clean(p) + string(filepath.Separator) // of a link, the directory behind it
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != root && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir():
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				in.files = append(in.files, input{name: path, path: path, inDir: true})
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("walk directory: %w", err)
	}
	if len(in.files) == before {
		return fmt.Errorf("walk directory %s: it holds no files", p)
	}
	return nil
}

// opened is a file being read: decompressed, its first bytes known.
type opened struct {
	io.Reader
	close func() error
	// raw is the start of the file as it is stored.
	raw []byte
	// empty says that the file has no bytes at all.
	empty bool
}

// open opens the file and undoes gzip and zstd by its first bytes.
func (in input) open() (*opened, error) {
	f, err := os.Open(in.path)
	if err != nil {
		return nil, fmt.Errorf("open input: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, fmt.Errorf("open input %s: is a directory", in.name)
	}
	return decompressed(in.name, f)
}

// decompressed undoes gzip and zstd, and closes what it cannot read.
func decompressed(name string, f io.ReadCloser) (*opened, error) {
	raw := make([]byte, sniffSize)
	n, err := io.ReadFull(f, raw)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		_ = f.Close()
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	o := &opened{raw: raw[:n], empty: n == 0, close: f.Close}
	if err := o.decompress(io.MultiReader(bytes.NewReader(raw[:n]), f)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return o, nil
}

// Decompress opens a file and undoes gzip and zstd, told by its first bytes. A
// container of Retrace's own, which is zstd too, is given as it is.
func Decompress(path string) (io.ReadCloser, error) {
	o, err := input{name: path, path: path}.open()
	if err != nil {
		return nil, err
	}
	return stream{o.Reader, o.close}, nil
}

// DecompressStream is Decompress for what is open already, such as standard
// input; errors call it by the name.
func DecompressStream(name string, r io.Reader) (io.ReadCloser, error) {
	o, err := decompressed(name, io.NopCloser(r))
	if err != nil {
		return nil, err
	}
	return stream{o.Reader, o.close}, nil
}

// CutOff is a reader that ends where its compressed file is cut short: for a
// container inside, whose own reader finds what is missing.
type CutOff struct{ io.Reader }

// Read takes a cut for the end.
func (c CutOff) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// stream is a reader with a function to close it.
type stream struct {
	io.Reader
	close func() error
}

// Close closes the file.
func (s stream) Close() error { return s.close() }

// sniffSize is how much of a stored file its kind is told by.
const sniffSize = 4096

func (o *opened) decompress(stored io.Reader) error {
	switch {
	case isContainer(o.raw):
		o.Reader = stored
		return nil
	case bytes.HasPrefix(o.raw, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(bufio.NewReaderSize(stored, 64<<10))
		if err != nil {
			return fmt.Errorf("gzip: %w", cutShort(err))
		}
		o.Reader = compressed{z, "gzip"}
		return nil
	case isZstd(o.raw):
		return o.zstd(stored)
	}
	for _, k := range []struct{ magic, name string }{
		{"\xfd7zXZ\x00", "xz"}, {"BZh", "bzip2"}, {"PK\x03\x04", "zip"}, {"\x04\x22\x4d\x18", "lz4"},
	} {
		if bytes.HasPrefix(o.raw, []byte(k.magic)) {
			return fmt.Errorf("compressed with %s, which is not read: decompress it, or pipe it in as -", k.name)
		}
	}
	o.Reader = stored
	return nil
}

// isZstd knows frames and skippable frames.
func isZstd(b []byte) bool {
	return len(b) >= 4 && (string(b[:4]) == "\x28\xb5\x2f\xfd" || b[0]&0xf0 == 0x50 && string(b[1:4]) == "\x2a\x4d\x18")
}

func (o *opened) zstd(stored io.Reader) error {
	z, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	closeFile := o.close
	o.close = func() error {
		z.Close()
		return closeFile()
	}
	o.Reader = compressed{z, "zstd"}
	return nil
}

// compressed names the codec in the errors of a decompressor.
type compressed struct {
	io.Reader
	codec string
}

// Read reads on; the end of the data is io.EOF only where the file is whole.
func (c compressed) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return n, fmt.Errorf("zstd: the file needs a window of more than %d MiB (zstd --long=28 or more): "+
			"decompress it first, e.g. zstd -dc --long=31 FILE | … -: %w", maxWindow>>20, err)
	}
	return n, fmt.Errorf("%s: %w", c.codec, cutShort(err))
}

func cutShort(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fmt.Errorf("the compressed file is cut short: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// head opens a file and looks at its start, for detection. What it read is
// given again by the returned reader. A fault beyond the start is left to it.
func (in input) head() (*Head, *opened, error) {
	o, err := in.open()
	if err != nil {
		return nil, nil, err
	}
	start := make([]byte, headSize)
	n, err := io.ReadFull(o, start)
	whole := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !whole && n == 0 {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", in.name, err), o.close())
	}
	rest := o.Reader
	if err != nil && !whole {
		rest = failing{err}
	}
	o.Reader = io.MultiReader(bytes.NewReader(start[:n]), rest)
	return NewHead(start[:n], whole), o, nil
}

// failing is a reader that has failed.
type failing struct{ err error }

// Read gives the error.
func (f failing) Read([]byte) (int, error) { return 0, f.err }
