// Package tokenizer turns text into the tokens of a model, by the model's own
// tokenizer.json (the file of Hugging Face's tokenizers).
//
// It reads byte-pair encodings, on bytes (Qwen, Llama 3, DeepSeek, Mistral
// Nemo, gpt-oss, GPT-2) or on characters with single bytes to fall back on
// (Gemma, Llama 2), and gives the very ids that Hugging Face's library gives.
// Whatever a file asks for beyond that is refused when it is read, by name:
// other models (Unigram, WordPiece), other normalizers and pre-tokenizers, and
// patterns that are more than sets of characters in a row.
//
// Runes that are newer than Go's tables (Unicode 15) are no letters here, and may
// be split otherwise than by a library with newer ones.
//
// The package has no vocabulary of its own.
package tokenizer
