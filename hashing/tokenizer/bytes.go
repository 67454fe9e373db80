package tokenizer

// letters is the alphabet of byte-level vocabularies: the rune that stands for
// each byte. Printable bytes stand for themselves; the others, in order, for
// the runes from 256 on (GPT-2's bytes_to_unicode).
var letters, bytesOf = makeLetters()

func makeLetters() (letters [256]rune, bytesOf map[rune]byte) {
	bytesOf = make(map[rune]byte, 256)
	hidden := rune(256)
	for b := range letters {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			letters[b] = rune(b)
		default:
			letters[b] = hidden
			hidden++
		}
		bytesOf[letters[b]] = byte(b)
	}
	return letters, bytesOf
}

// appendLetters appends the text's bytes as letters.
func appendLetters(dst []byte, text string) []byte {
	for i := range len(text) {
		dst = append(dst, letterTexts[text[i]]...)
	}
	return dst
}

var letterTexts = makeLetterTexts()

func makeLetterTexts() (texts [256]string) {
	for b, r := range letters {
		texts[b] = string(r)
	}
	return texts
}

// appendBytes appends the bytes that a token's letters stand for, or the token
// as it is where other runes are among them.
func appendBytes(dst []byte, token string) []byte {
	start := len(dst)
	for _, r := range token {
		b, found := bytesOf[r]
		if !found {
			return append(dst[:start], token...)
		}
		dst = append(dst, b)
	}
	return dst
}

// byteToken is the byte of a token like <0x0A>.
func byteToken(token string) (b byte, ok bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	for _, c := range []byte(token[3:5]) {
		switch {
		case c >= '0' && c <= '9':
			b = b<<4 | (c - '0')
		case c >= 'A' && c <= 'F':
			b = b<<4 | (c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return b, true
}
