package replay

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"retrace/openai"
)

// maxMedia bounds a file of media, in bytes.
const maxMedia = 1 << 30

// mediaDir is the directory beneath which files are read, and nowhere else.
type mediaDir struct{ root *os.Root }

func openMediaDir(dir string) (*mediaDir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open directory of media: %w", err)
	}
	return &mediaDir{root}, nil
}

func (m *mediaDir) close() {
	if m != nil {
		_ = m.root.Close() // it was read only
	}
}

// read is a file's content; nil reads none.
func (m *mediaDir) read(name string) ([]byte, error) {
	if m == nil {
		return nil, fmt.Errorf("file %s: no directory of media was allowed", strconv.Quote(clip(name)))
	}
	info, err := m.root.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read media: %w", err)
	}
	if !info.Mode().IsRegular() { // to open a pipe would wait for its writer
		return nil, fmt.Errorf("read media: %s: found no regular file (mode %v)", name, info.Mode())
	}
	f, err := m.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read media: %w", err)
	}
	defer f.Close() // it was read only
	content, err := io.ReadAll(io.LimitReader(f, maxMedia+1))
	if err != nil {
		return nil, fmt.Errorf("read media: %w", err)
	}
	if len(content) > maxMedia {
		return nil, fmt.Errorf("read media: %s: more than %d bytes", name, maxMedia)
	}
	return content, nil
}

// fileName is the name of a file that a transcription's body has, bare or as
// other media have theirs: "file:NAME".
func fileName(ref string) string {
	name, found := strings.CutPrefix(ref, "file:")
	if found {
		name = strings.TrimPrefix(name, "//")
	}
	return name
}

// size is how much the files that j's body names will add to it.
func (m *mediaDir) size(j *job) int64 {
	if m == nil {
		return 0
	}
	var names []string
	if j.api == openai.Transcriptions {
		if list, _, err := spans(j.source); err == nil {
			names = append(names, fileName(jsonString(valueOf(j.source, list, "file"))))
		}
	} else {
		for _, at := range mediaRefs.FindAllSubmatch(j.source, -1) {
			names = append(names, unquote(at[2]))
		}
	}
	sum := int64(0)
	for _, name := range names {
		if info, err := m.root.Stat(name); err == nil {
			sum += int64(base64.StdEncoding.EncodedLen(int(min(info.Size(), maxMedia))))
		}
	}
	return sum
}

// mediaRefs are the members of content parts that name a file: "url" and the
// like, which hold URLs, and "data", which holds Base64 alone. Within a JSON
// string a quote is escaped, so a match is a member. The name may have escapes:
// some writers make them of slashes, others of letters beyond ASCII.
var mediaRefs = regexp.MustCompile(`"(url|image_url|audio_url|video_url|file_url|file_data|data)"\s*:\s*"file:(?:\\?/\\?/)?((?:[^"\\]|\\.)*)"`)

// unquote decodes the inside of a JSON string.
func unquote(inside []byte) string {
	return jsonString(append(append([]byte{'"'}, inside...), '"'))
}

// inline puts the files that a body names in place of their names.
func (m *mediaDir) inline(body []byte) ([]byte, error) {
	if m == nil {
		return body, nil
	}
	all := mediaRefs.FindAllSubmatchIndex(body, -1)
	if all == nil {
		return body, nil
	}
	var dst []byte
	last := 0
	for _, at := range all {
		member, name := string(body[at[2]:at[3]]), unquote(body[at[4]:at[5]])
		content, err := m.read(name)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, body[last:at[0]]...), `"`+member+`":"`...)
		if member != "data" {
			dst = append(dst, "data:"+mediaKind(name, content)+";base64,"...)
		}
		dst = append(base64.StdEncoding.AppendEncode(dst, content), '"')
		last = at[1]
	}
	return append(dst, body[last:]...), nil
}

// mediaKinds are the media types of usual files, the same on every machine.
var mediaKinds = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp",
	".wav": "audio/wav", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".ogg": "audio/ogg", ".m4a": "audio/mp4",
	".mp4": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime", ".pdf": "application/pdf",
}

// mediaKind is a file's media type, by its name, else by its content.
func mediaKind(name string, content []byte) string {
	if kind := mediaKinds[strings.ToLower(path.Ext(name))]; kind != "" {
		return kind
	}
	kind, _, _ := strings.Cut(http.DetectContentType(content), ";")
	return kind
}
