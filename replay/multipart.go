package replay

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// formBoundary parts the fields of a form; it is fixed, so that the same trace
// gives the same bytes.
const formBoundary = "retrace-form-4f1d7c60a9be25c3d8"

// formType is the content type of a form.
const formType = "multipart/form-data; boundary=" + formBoundary

// appendForm renders a body of transcriptions, a JSON object, as the form that
// the API takes: "file" as a file, whose content is a data URL's or that of a
// file in the directory of media; every other member as a field, strings
// without their quotes, each element of an array on its own.
func (b *bodies) appendForm(dst, body []byte) ([]byte, error) {
	list, _, err := spans(body)
	if err != nil {
		return dst, fmt.Errorf("make form: %w", err)
	}
	if !has(list, "file") {
		return dst, errors.New("make form: field file: found none, want a data URL or the name of a file")
	}
	for _, s := range list {
		raw := body[s.start:s.end]
		switch {
		case s.key == "file":
			if dst, err = b.appendFile(dst, raw, jsonString(valueOf(body, list, "filename"))); err != nil {
				return dst, fmt.Errorf("make form: field file: %w", err)
			}
		case s.key == "filename" || string(raw) == "null":
		case raw[0] == '[':
			var elems []json.RawMessage
			if err := json.Unmarshal(raw, &elems); err != nil {
				return dst, fmt.Errorf("make form: field %s: %w", s.key, err)
			}
			for _, e := range elems {
				dst = appendField(dst, strings.TrimSuffix(s.key, "[]")+"[]", e)
			}
		default:
			dst = appendField(dst, s.key, raw)
		}
	}
	return append(dst, "--"+formBoundary+"--\r\n"...), nil
}

func appendField(dst []byte, name string, raw []byte) []byte {
	dst = append(dst, "--"+formBoundary+"\r\nContent-Disposition: form-data; name="+quotedName(name)+"\r\n\r\n"...)
	if raw[0] == '"' {
		dst = append(dst, jsonString(raw)...)
	} else {
		dst = append(dst, raw...)
	}
	return append(dst, "\r\n"...)
}

// quotedName is a name as it stands in a Content-Disposition: RFC 7578, §4.2,
// with the escapes of the WHATWG's form data.
func quotedName(name string) string {
	return `"` + strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A").Replace(name) + `"`
}

func jsonString(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func (b *bodies) appendFile(dst, raw []byte, name string) ([]byte, error) {
	ref := jsonString(raw)
	if ref == "" {
		return dst, fmt.Errorf("found %s, want a data URL or the name of a file", clip(string(raw)))
	}
	kind, content, err := dataURL(ref)
	if errors.Is(err, errNoDataURL) {
		ref = fileName(ref)
		if name == "" {
			name = path.Base(ref)
		}
		content, err = b.media.read(ref)
		kind = mediaKind(ref, content)
	}
	if err != nil {
		return dst, err
	}
	if bytes.Contains(content, []byte(formBoundary)) {
		return dst, errors.New("its content holds the form's boundary")
	}
	if name == "" {
		_, suffix, _ := strings.Cut(kind, "/")
		name = "audio." + suffix
	}
	dst = append(dst, "--"+formBoundary+"\r\nContent-Disposition: form-data; name=\"file\"; filename="+quotedName(name)+
		"\r\nContent-Type: "+kind+"\r\n\r\n"...)
	return append(append(dst, content...), "\r\n"...), nil
}

var errNoDataURL = errors.New("no data URL")

// dataURL decodes a data URL: RFC 2397.
func dataURL(ref string) (kind string, content []byte, err error) {
	rest, found := strings.CutPrefix(ref, "data:")
	if !found {
		return "", nil, errNoDataURL
	}
	head, data, found := strings.Cut(rest, ",")
	if !found {
		return "", nil, errors.New("data URL without a comma")
	}
	head, coded := strings.CutSuffix(head, ";base64")
	kind, _, _ = strings.Cut(head, ";")
	if kind == "" || strings.ContainsAny(kind, "\r\n") || !strings.Contains(kind, "/") {
		kind = "text/plain"
	}
	if coded {
		content, err = base64.StdEncoding.DecodeString(data)
	} else {
		var text string
		text, err = url.PathUnescape(data)
		content = []byte(text)
	}
	if err != nil {
		return "", nil, fmt.Errorf("decode data URL: %w", err)
	}
	return kind, content, nil
}
