package formatstest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"retrace/formats"
)

// DiffJSONLines compares two JSON Lines files line by line as JSON values:
// numbers by their literals, strings as decoded, key order left out. Blank
// lines do not count.
func DiffJSONLines(source, export []byte) string {
	a, b := rows(source), rows(export)
	if len(a) != len(b) {
		return fmt.Sprintf("%d rows became %d", len(a), len(b))
	}
	for i := range a {
		if !sameJSON(a[i], b[i]) {
			return fmt.Sprintf("row %d differs:\n  source %s\n  export %s", i+1, a[i], b[i])
		}
	}
	return ""
}

func rows(file []byte) [][]byte {
	var list [][]byte
	for line := range bytes.SplitSeq(bytes.TrimPrefix(file, []byte("\xef\xbb\xbf")), []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			list = append(list, line)
		}
	}
	return list
}

// sameJSON compares by encoding/json, which our own reader has no part in, and
// by formats.EqualValue, which unlike it tells lone surrogates apart.
func sameJSON(a, b []byte) bool {
	var x, y any
	for _, p := range []struct {
		text []byte
		to   *any
	}{{a, &x}, {b, &y}} {
		d := json.NewDecoder(bytes.NewReader(p.text))
		d.UseNumber()
		if d.Decode(p.to) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y) && formats.EqualValue(a, b)
}

// DiffCSV compares two CSV files cell by cell, the header included.
func DiffCSV(source, export []byte) string {
	a, errA := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(source, []byte("\xef\xbb\xbf")))).ReadAll()
	b, errB := csv.NewReader(bytes.NewReader(export)).ReadAll()
	if errA != nil || errB != nil {
		return fmt.Sprintf("not CSV: source %v, export %v", errA, errB)
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d rows became %d", len(a), len(b))
	}
	for i := range a {
		if !reflect.DeepEqual(a[i], b[i]) {
			return fmt.Sprintf("row %d differs:\n  source %s\n  export %s", i, strings.Join(a[i], "|"), strings.Join(b[i], "|"))
		}
	}
	return ""
}
