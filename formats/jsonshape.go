package formats

import (
	"bytes"
	"encoding/json"
	"strings"
)

// shapeDepth bounds the paths that a shape has, nestDepth how deep a value may
// be nested before it is given up.
const (
	shapeDepth = 4
	nestDepth  = 64
)

// shape is what the first JSON value of a file holds: the kind of value at
// each path. A path is ".key" for a field and "[]" for an element, joined
// ("[].conversations[].from"). A ".*" before the last field stands for any. Kinds are '{', '[',
// 's' (string), 'n' (number), 'b' (true, false) and '0' (null).
type shape map[string]byte

// jsonShape reads the shape of the first JSON value in head, which may be cut
// anywhere: what comes before the cut counts. Empty where head is no JSON.
func jsonShape(head []byte) shape {
	s := shape{}
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))))
	dec.UseNumber()
	s.value(dec, "", 0)
	return s
}

// value takes the next value of dec, which stands at path; false at the end of
// what can be read.
func (s shape) value(dec *json.Decoder, path string, depth int) bool {
	tok, err := dec.Token()
	if err != nil || depth > nestDepth {
		return false
	}
	kind := tokenKind(tok)
	if depth <= shapeDepth {
		s[path] = kind
		s[anyParent(path)] = kind
	}
	switch kind {
	case '{':
		return s.members(dec, path, depth)
	case '[':
		for dec.More() {
			if !s.value(dec, path+"[]", depth+1) {
				return false
			}
		}
		_, err = dec.Token()
	}
	return err == nil
}

func (s shape) members(dec *json.Decoder, path string, depth int) bool {
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return false
		}
		name, ok := key.(string)
		if !ok || !s.value(dec, path+"."+name, depth+1) {
			return false
		}
	}
	_, err := dec.Token()
	return err == nil
}

// anyParent is path with ".*" for the field that holds the last one.
func anyParent(path string) string {
	last := strings.LastIndexByte(path, '.')
	if last <= 0 {
		return path
	}
	if before := strings.LastIndexByte(path[:last], '.'); before >= 0 {
		return path[:before] + ".*" + path[last:]
	}
	return path
}

func tokenKind(tok json.Token) byte {
	switch t := tok.(type) {
	case json.Delim:
		return byte(t)
	case string:
		return 's'
	case json.Number:
		return 'n'
	case bool:
		return 'b'
	}
	return '0'
}

// has says that every one of the paths is there.
func (s shape) has(paths ...string) bool {
	for _, p := range paths {
		if _, ok := s[p]; !ok {
			return false
		}
	}
	return true
}
