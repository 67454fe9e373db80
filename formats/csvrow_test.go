package formats

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// csvRow is a row as csvReader gives it.
type csvRow struct {
	line  int64
	cells []string
	err   error
}

func readCSV(t *testing.T, text string) []csvRow {
	t.Helper()
	var rows []csvRow
	c := newCSVReader(strings.NewReader(text))
	for {
		cells, row, err := c.next()
		if err == io.EOF {
			return rows
		}
		if err != nil && row == nil {
			t.Fatalf("read %q: %v", text, err)
		}
		r := csvRow{line: c.line, err: err}
		for _, cell := range cells {
			if err == nil {
				r.cells = append(r.cells, string(cell))
			}
		}
		rows = append(rows, r)
	}
}

func TestCSVRows(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []csvRow
	}{
		{"no final newline", "a,b\n1,2", []csvRow{{1, []string{"a", "b"}, nil}, {2, []string{"1", "2"}, nil}}},
		{"byte order mark and CRLF", "\xef\xbb\xbfa,b\r\n1,2\r\n", []csvRow{{1, []string{"a", "b"}, nil}, {2, []string{"1", "2"}, nil}}},
		{"blank lines keep the count", "a\n\n  \n\r\n1\n\n", []csvRow{{1, []string{"a"}, nil}, {5, []string{"1"}, nil}}},
		{"empty cells", ",\n,,\n", []csvRow{{1, []string{"", ""}, nil}, {2, []string{"", "", ""}, nil}}},
		{"quoted comma and quote", `"a,b","say ""x""",` + "\n", []csvRow{{1, []string{"a,b", `say "x"`, ""}, nil}}},
		{"a cell over lines", "\"a\r\nb\n\nc\",2\r\nx,y", []csvRow{{1, []string{"a\r\nb\n\nc", "2"}, nil}, {5, []string{"x", "y"}, nil}}},
		{"a stray quote costs its row", "5\"x,1\n\"a\"b,2\nc,3\n", []csvRow{{1, nil, errStrayQuote}, {2, nil, errStrayQuote}, {3, []string{"c", "3"}, nil}}},
		{"an open quote costs its row", "\"a,1\nb,2\nc,3", []csvRow{{1, nil, errOpenQuote}, {2, []string{"b", "2"}, nil}, {3, []string{"c", "3"}, nil}}},
		{"two open quotes make a cell", "\"a,1\n\"\nc,3", []csvRow{{1, []string{"a,1\n"}, nil}, {3, []string{"c", "3"}, nil}}},
	} {
		if got := readCSV(t, c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

// Far lines do not close a quote: the row is given up, the lines are not.
func TestCSVOpenQuoteIsBounded(t *testing.T) {
	text := "\"a,1\n" + strings.Repeat("b,2\n", 3*maxCellLines) + "c\",3\n"
	rows := readCSV(t, text)
	if len(rows) != 3*maxCellLines+2 {
		t.Fatalf("got %d rows", len(rows))
	}
	for i, r := range rows {
		if r.line != int64(i+1) {
			t.Fatalf("row %d stands on line %d", i, r.line)
		}
		bad := i == 0 || i == len(rows)-1
		if bad != (r.err != nil) {
			t.Errorf("row %d: error %v", i, r.err)
		}
	}
}

// What appendCell writes, csvReader reads back, and so does encoding/csv.
func TestCSVWriteRead(t *testing.T) {
	cell := rapid.StringOf(rapid.RuneFrom([]rune("ab1 ,\"\r\n\té")))
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(cell, 2, 5).Draw(t, "cells")
		var line []byte
		for i, c := range cells {
			if i > 0 {
				line = append(line, ',')
			}
			line = appendCell(line, []byte(c))
		}
		r := newCSVReader(bytes.NewReader(append(line, "\nnext,row\n"...)))
		got, _, err := r.next()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for i := range cells {
			if i >= len(got) || string(got[i]) != cells[i] {
				t.Fatalf("%q: got %q, want %q", line, got, cells)
			}
		}
		if next, _, err := r.next(); err != nil || string(next[0]) != "next" {
			t.Fatalf("%q: the next row is %q, %v", line, next, err)
		}
		theirs, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil || len(theirs) != len(cells) {
			t.Fatalf("encoding/csv reads %q as %q, %v", line, theirs, err)
		}
	})
}

// FuzzCSV compares with encoding/csv: where that reads a whole text, we read
// the same (it makes of each \r\n in a quoted cell a \n).
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,2", "\"a\r\nb\",\"\"\"\"\n", "a\"b\n", "\n\n,\n", "\"", "\xef\xbb\xbfx"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ours := readCSV(t, text)
		r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\xef\xbb\xbf")))
		r.FieldsPerRecord = -1
		theirs, err := r.ReadAll()
		if err != nil || strings.Count(text, "\n") > maxCellLines {
			return
		}
		i := 0
		for _, row := range theirs {
			if len(row) == 1 && strings.TrimSpace(row[0]) == "" {
				continue // to us a blank line, or a quoted blank: not compared
			}
			for i < len(ours) && len(ours[i].cells) == 1 && strings.TrimSpace(ours[i].cells[0]) == "" {
				i++
			}
			if i >= len(ours) || errors.Is(ours[i].err, errStrayQuote) {
				t.Fatalf("%q: we have %+v, encoding/csv %q", text, ours, theirs)
			}
			for j, cell := range row {
				if lines(cell) != lines(ours[i].cells[j]) {
					t.Fatalf("%q: we have %+v, encoding/csv %q", text, ours, theirs)
				}
			}
			i++
		}
	})
}

// lines drops carriage returns: encoding/csv folds some of them, we keep all.
func lines(s string) string { return strings.ReplaceAll(s, "\r", "") }
