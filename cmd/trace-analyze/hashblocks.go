package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"retrace/cmd/internal/cli"
	"retrace/formats"
	"retrace/hashing"
	"retrace/internal/plural"
)

// hashBlocksOptions are the flags of hash-blocks, as given.
type hashBlocksOptions struct {
	algorithm, seed, extra string
	blockSize              int

	flags *pflag.FlagSet
}

func newHashBlocksOptions() *hashBlocksOptions {
	o := &hashBlocksOptions{flags: pflag.NewFlagSet("trace-analyze hash-blocks", pflag.ContinueOnError)}
	fs := o.flags
	fs.SortFlags = false
	fs.StringVar(&o.algorithm, "algorithm", "", "`NAME`: sha256, sha256_cbor, xxhash or xxhash_cbor, as the server's --prefix-caching-hash-algo; required")
	fs.IntVar(&o.blockSize, "block-size", 0, "`N`: tokens in a block, as the server's --block-size; required")
	fs.StringVar(&o.seed, "none-hash-seed", "", "`TEXT`: what the server's PYTHONHASHSEED is; default: "+hashing.DefaultSeed+
		" for sha256 and sha256_cbor, as a server without it; none for the others, which a server without it seeds at random")
	fs.StringVar(&o.extra, "extra-keys", "null", "`JSON`: extra keys of every block; an array is a tuple, {\"bytes\": \"HEX\"} a byte string")
	return o
}

const hashBlocksHead = `Usage:
  trace-analyze hash-blocks --algorithm NAME --block-size N [flags] [FILE]

Prints the digest of each full block of a prompt in hex, one a line, byte for
byte as vLLM computes it. FILE is one JSON array of token ids, plain, gzip or
zstd; without it, or as "-", it is standard input. The last 16 digits are the
number by which vLLM's KV-cache events name the block.

Flags:
`

const hashBlocksTail = `
Examples:
  echo '[1,2,3,4]' | trace-analyze hash-blocks --algorithm sha256_cbor --block-size 2
  trace-analyze hash-blocks --algorithm xxhash --block-size 16 --none-hash-seed 0 prompt.json
  trace-analyze hash-blocks --algorithm sha256 --block-size 16 --extra-keys '[["lora","name","/path"]]' prompt.json
`

// chain makes the chain that the flags describe.
func (o *hashBlocksOptions) chain() (*hashing.Chain, error) {
	if o.flags.NArg() > 1 {
		return nil, fmt.Errorf("hash-blocks takes one FILE, found %s", plural.Of(o.flags.NArg(), "argument"))
	}
	for _, name := range []string{"algorithm", "block-size"} {
		if !o.flags.Changed(name) {
			return nil, fmt.Errorf("hash-blocks needs --%s", name)
		}
	}
	alg, err := hashing.ParseAlgorithm(o.algorithm, hashing.VLLM()...)
	if err != nil {
		return nil, fmt.Errorf("--algorithm: %w", err)
	}
	seed := o.seed
	if !o.flags.Changed("none-hash-seed") {
		var known bool
		if seed, known = alg.Seed(); !known {
			return nil, fmt.Errorf("--algorithm %v needs --none-hash-seed: vLLM seeds it at random where PYTHONHASHSEED is unset, "+
				"and then its hashes cannot be compared", alg)
		}
	}
	c, err := hashing.NewChain(alg, o.blockSize, seed)
	if err != nil {
		return nil, fmt.Errorf("--block-size %d: %w", o.blockSize, err)
	}
	extra, err := hashing.ParseExtra([]byte(o.extra))
	if err != nil {
		return nil, fmt.Errorf("--extra-keys: %w", err)
	}
	return c, c.SetExtraValue(extra)
}

// hashBlocks prints the digests of a prompt's blocks.
func hashBlocks(ctx context.Context, args []string, s cli.Command) (err error) {
	o := newHashBlocksOptions()
	done, err := s.Parse(o.flags, args, func(w io.Writer) error {
		_, err := fmt.Fprint(w, hashBlocksHead, cli.FlagUsages(o.flags), hashBlocksTail)
		return err
	})
	if done || err != nil {
		return err
	}
	c, err := o.chain()
	if err != nil {
		return cli.UsageError{Err: err}
	}
	name, in, err := o.open(s.In)
	if err != nil {
		return err
	}
	ids, err := readTokenIDs(ctx, in)
	if err := errors.Join(err, in.Close()); err != nil {
		return fmt.Errorf("read token ids from %s: %w", name, err)
	}
	return printDigests(ctx, c, ids, s.Out)
}

// open opens FILE or standard input, either of which may be compressed.
func (o *hashBlocksOptions) open(stdin io.Reader) (name string, in io.ReadCloser, err error) {
	if path := o.flags.Arg(0); path != "" && path != "-" {
		in, err = formats.Decompress(path)
		return path, in, err
	}
	in, err = formats.DecompressStream(stdinName, stdin)
	return stdinName, in, err
}

// printDigests prints the digest of each full block.
func printDigests(ctx context.Context, c *hashing.Chain, ids []uint64, w io.Writer) error {
	out := bufio.NewWriter(w)
	var digests, line []byte
	for batch := range slices.Chunk(ids, checkEvery) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		digests = c.AppendDigests(digests[:0], batch)
		for digest := range slices.Chunk(digests, c.Algorithm().Size()) {
			line = append(hex.AppendEncode(line[:0], digest), '\n')
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// readTokenIDs reads a JSON array of token ids, all of it: an id that is none
// shall not be found behind half of the output.
func readTokenIDs(ctx context.Context, in io.Reader) ([]uint64, error) {
	dec := json.NewDecoder(in)
	dec.UseNumber()
	if err := want(dec, json.Delim('['), "a JSON array"); err != nil {
		return nil, err
	}
	var ids []uint64
	for dec.More() {
		if len(ids)%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		id, err := tokenID(dec, len(ids))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if err := want(dec, json.Delim(']'), "the array's end"); err != nil {
		return nil, err
	}
	var syntax *json.SyntaxError
	switch _, err := dec.Token(); {
	case err == io.EOF:
		return ids, nil
	case err == nil, errors.As(err, &syntax):
		return nil, fmt.Errorf("byte %d: found more behind the array, expected nothing", dec.InputOffset())
	default:
		return nil, err
	}
}

// want reads one token of JSON, which must be that one.
func want(dec *json.Decoder, delim json.Delim, what string) error {
	token, err := dec.Token()
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return fmt.Errorf("byte %d: found the end of the input, expected %s", dec.InputOffset(), what)
	case err != nil:
		return fmt.Errorf("byte %d: %w", dec.InputOffset(), err)
	case token != delim:
		return fmt.Errorf("byte %d: found %s, expected %s", dec.InputOffset(), jsonKind(token), what)
	}
	return nil
}

// tokenID reads the id at an index of the array.
func tokenID(dec *json.Decoder, index int) (uint64, error) {
	token, err := dec.Token()
	if err != nil {
		return 0, fmt.Errorf("index %d: %w", index, err)
	}
	number, ok := token.(json.Number)
	if !ok {
		return 0, fmt.Errorf("index %d: found %s, expected a token id", index, jsonKind(token))
	}
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("index %d: found %s, expected a whole number from 0 to 2^64-1", index, number)
	}
	return id, nil
}

// jsonKind names what stands in the place of a number.
func jsonKind(token json.Token) string {
	switch t := token.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(t)
	case json.Delim:
		switch t {
		case '[':
			return "an array"
		case '{':
			return "an object"
		}
	}
	return fmt.Sprint(token)
}
