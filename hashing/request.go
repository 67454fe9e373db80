package hashing

import "fmt"

// Request states those facts of a request that vLLM puts into the extra keys
// of its blocks. The zero Request has none: all its blocks have None.
type Request struct {
	// Adapter and AdapterPath are the LoRA adapter's name and path; without a
	// name there is no adapter. They are in every block's keys; the path only
	// in the tagged form.
	Adapter, AdapterPath string
	// Salt is the cache salt, in the keys of the first block.
	Salt string
	// Media are the prompt's images and the like, by offset. Each is in the
	// keys of every block that holds a part of its placeholder; the blocks
	// behind it differ by their parents, and those before it are shared.
	Media []Media
	// Embeddings are digests of the prompt's embeddings, one for each block:
	// vLLM takes the SHA-256 of the tensor's bytes. Blocks beyond them have none.
	Embeddings [][]byte
	// Bare leaves out the tags, as vLLM before 0.32 did.
	Bare bool
}

// Media is one input that is no text, at its placeholder in the prompt.
type Media struct {
	// Identifier is the digest of its content, or what the client named it.
	Identifier string
	// Offset and Length are the placeholder's, in tokens from the prompt's start.
	Offset, Length int
}

// validate checks what vLLM takes for granted.
func (r *Request) validate() error {
	end := 0
	for i, m := range r.Media {
		if m.Length < 1 {
			return fmt.Errorf("media %d: length: found %d, expected at least 1", i, m.Length)
		}
		if m.Offset < end {
			return fmt.Errorf("media %d: offset: found %d, expected at least %d, the end of what is before it", i, m.Offset, end)
		}
		end = m.Offset + m.Length
	}
	return nil
}

// tags are constants of vLLM's code.
const (
	tagAdapter    Constant = "lora"
	tagMedia      Constant = "mm"
	tagSalt       Constant = "cache_salt"
	tagEmbeddings Constant = "prompt_embeds"
)

// Keys are the extra keys of block number block, from 0, of a request in
// blocks of blockSize tokens: a tuple, or nil for None.
func (r *Request) Keys(block, blockSize int) []any {
	var keys []any
	if r.Adapter != "" {
		keys = append(keys, r.tagged(tagAdapter, r.Adapter, r.AdapterPath))
	}
	start := block * blockSize
	for _, m := range r.Media {
		if m.Offset < start+blockSize && m.Offset+m.Length > start {
			keys = append(keys, r.media(m.Identifier, m.Offset-start))
		}
	}
	if block == 0 && r.Salt != "" {
		keys = append(keys, r.tagged(tagSalt, r.Salt))
	}
	if block < len(r.Embeddings) {
		keys = append(keys, r.tagged(tagEmbeddings, r.Embeddings[block]))
	}
	return keys
}

// tagged is a key: a tuple that begins with its tag, or bare, the first value.
func (r *Request) tagged(tag Constant, values ...any) any {
	if r.Bare {
		return values[0]
	}
	return append([]any{tag}, values...)
}

// media is a medium's key, which is a tuple in both forms.
func (r *Request) media(values ...any) any {
	if r.Bare {
		return values
	}
	return append([]any{tagMedia}, values...)
}

// special is the number of leading blocks whose keys are not those of an
// endless text with the same adapter.
func (r *Request) special(blockSize int) int {
	n := len(r.Embeddings)
	if r.Salt != "" {
		n = max(n, 1)
	}
	if len(r.Media) > 0 {
		last := r.Media[len(r.Media)-1]
		n = max(n, (last.Offset+last.Length-1)/blockSize+1)
	}
	return n
}

// requestKeys makes the extra keys of a chain's blocks, one after the other.
type requestKeys struct {
	facts   Request
	block   int // the next one
	special int
}

// SetRequest makes the extra keys of all blocks from the facts of the request
// that the chain, which must be at its root, hashes. It takes effect until the
// next Reset or SetExtra, and does not copy what the facts refer to.
func (c *Chain) SetRequest(facts Request) error {
	if c.last != c.root || len(c.pending) > 0 {
		return fmt.Errorf("set request: found a chain with tokens, expected one at its root")
	}
	if err := facts.validate(); err != nil {
		return fmt.Errorf("set request: %w", err)
	}
	c.request = &requestKeys{facts: facts, special: facts.special(c.blockSize)}
	return nil
}

// next sets the extra keys of the chain's next block. From the second block
// behind the last special one on they are what they were.
func (k *requestKeys) next(c *Chain) {
	if k.block <= k.special {
		var extra any
		if keys := k.facts.Keys(k.block, c.blockSize); keys != nil {
			extra = keys
		}
		if err := c.setExtra(extra); err != nil {
			panic(err) // Keys makes nothing that cannot be encoded
		}
	}
	k.block++
}
