package prompt

import (
	_ "embed" // the word list
	"fmt"
	"strings"
)

// wordCount is how many of the words are used: a power of two, so that a word
// is worth 11 bits and six of them spell a 64-bit key.
const wordCount = 2048

// wordList holds words of three to fourteen letters a-z that are one token
// each in nine public vocabularies, bare and behind a space. They are from
// SCOWL; words.NOTICE has its permission notice.
//
//go:embed words.txt
var wordList string

// word is a space and the word, padded; the last byte is the length with the space.
type word [16]byte

// wordTable holds the first wordCount words of the list.
var wordTable = parseWords(wordList)

// parseWords reads the first wordCount lines. The list is part of the program,
// and a test proves that it fits.
func parseWords(list string) *[wordCount]word {
	var table [wordCount]word
	for i := range table {
		var w string
		w, list, _ = strings.Cut(list, "\n")
		table[i][0] = ' '
		table[i][15] = byte(1 + copy(table[i][1:15], w))
	}
	return &table
}

// CommonWords are the words that text prompts are made of unless Vocabulary
// has others.
func CommonWords() []string { return strings.Fields(wordList)[:wordCount] }

// makeTable puts words into a table, and refuses those that do not fit.
func makeTable(words []string) ([]word, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("make prompts: vocabulary of %d words, want 2 or more", len(words))
	}
	table := make([]word, len(words))
	for i, w := range words {
		if !isWord(w) {
			return nil, fmt.Errorf("make prompts: word %q, want 1 to %d letters a-z", w, maxLetters)
		}
		table[i][0] = ' '
		table[i][15] = byte(1 + copy(table[i][1:15], w))
	}
	return table, nil
}

// maxLetters is the longest word that fits.
const maxLetters = len(word{}) - 2

// isWord says whether w may be a word of a prompt.
func isWord(w string) bool {
	return w != "" && len(w) <= maxLetters && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == ""
}
