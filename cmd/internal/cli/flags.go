package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// helpWidth is how wide --help is.
const helpWidth = 100

// FlagUsages lists the flags for --help. What stands in backquotes in a flag's
// text is the placeholder of its value; where it stands first, followed by a
// colon, it is not repeated in the text. Switches have none.
func FlagUsages(fs *pflag.FlagSet) string {
	type row struct{ left, text string }
	var rows []row
	width := 0
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		left := "      --" + f.Name
		if f.Shorthand != "" {
			left = "  -" + f.Shorthand + ", --" + f.Name
		}
		value, text := placeholder(f)
		if value != "" {
			left += " " + value
		}
		if d := f.DefValue; d != "" && d != "0" && d != "0s" && d != "false" && d != "[]" {
			text += " (default " + d + ")"
		}
		rows = append(rows, row{left, text})
		width = max(width, utf8.RuneCountInString(left))
	})
	width += 2
	var b strings.Builder
	for _, r := range rows {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(r.left))
		fmt.Fprintf(&b, "%s%s%s\n", r.left, pad, Wrap(r.text, width))
	}
	return b.String()
}

// placeholder splits a flag's text into the name of its value and the rest.
func placeholder(f *pflag.Flag) (value, text string) {
	if rest, ok := strings.CutPrefix(f.Usage, "`"); ok {
		if value, text, ok := strings.Cut(rest, "`: "); ok {
			return value, text
		}
	}
	value, text = pflag.UnquoteUsage(f)
	switch {
	case f.Value.Type() == "bool":
		value = ""
	case value == "duration":
		value = "DURATION"
	case value == "int", value == "uint", value == "float":
		value = "N"
	case value == "string":
		value = "TEXT"
	}
	return value, text
}

// Wrap breaks a text into lines of at most 100 columns, of which the second and
// later ones start at column indent, as the first is taken to.
func Wrap(text string, indent int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
