package prompt

import (
	_ "embed" // the word list
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
