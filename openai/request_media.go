package openai

import (
	"bytes"
	"strconv"
	"strings"
)

// MediaKind is what a content part that is not text shows.
type MediaKind uint8

// The kinds of media.
const (
	// Image is a picture.
	Image MediaKind = iota
	// Audio is sound.
	Audio
	// Video is moving pictures.
	Video
	// File is a document of any kind.
	File
)

// Media is one content part that is not text.
type Media struct {
	// Kind is what it is.
	Kind MediaKind
	// At is the place in the message's Content before which it stands, in bytes.
	At int
	// Ref is what the request has for it: a URL, a data URL, a file's id or
	// base64. It may alias the request's body.
	Ref []byte
	// Inline says that Ref holds the content itself: a data URL, or base64.
	Inline bool
}

// Content is the part of Ref by which contents are told apart: of a data URL
// what follows its comma.
func (m *Media) Content() []byte {
	if m.Inline && bytes.HasPrefix(m.Ref, []byte("data:")) {
		if _, content, ok := bytes.Cut(m.Ref, []byte{','}); ok {
			return content
		}
	}
	return m.Ref
}

// mediaFields are the fields of a content part that hold media.
var mediaFields = map[string]MediaKind{
	"image_url": Image, "input_image": Image, "image": Image,
	"audio_url": Audio, "input_audio": Audio,
	"video_url": Video, "video": Video,
	"file": File, "file_id": File, "file_data": File, "file_url": File,
}

// parseMessages reads the messages of a chat.
func parseMessages(s *scanner, dst []Message) ([]Message, error) {
	if s.null() {
		return dst, nil
	}
	err := s.array("messages", func() error {
		field := "messages[" + strconv.Itoa(len(dst)) + "]"
		var m Message
		err := s.object(field, func(key string) (err error) {
			switch key {
			case "role":
				m.Role, err = s.text(field + ".role")
			case "content":
				err = parseContent(s, field+".content", &m)
			case "tool_calls":
				m.ToolCalls, err = s.raw(key)
			default:
				err = s.skip()
			}
			return err
		})
		dst = append(dst, m)
		return err
	})
	return dst, err
}

// parseContent reads a message's content: a string, null, or typed parts.
func parseContent(s *scanner, field string, m *Message) (err error) {
	if s.peek() != '[' {
		m.Content, err = s.text(field)
		return err
	}
	var text strings.Builder
	count := 0
	add := func(one string) {
		if count++; count > 1 {
			text.WriteByte('\n')
		}
		text.WriteString(one)
	}
	m.Media, m.Parts = nil, 0
	err = s.array(field, func() error {
		if s.peek() == '"' { // some clients send bare strings as parts
			one, err := s.text(field)
			add(one)
			return err
		}
		p, err := parsePart(s, field)
		switch {
		case err != nil:
		case p.isText:
			add(p.text)
		default:
			m.Parts++
			if p.media != nil {
				p.media.At = text.Len()
				m.Media = append(m.Media, *p.media)
			}
		}
		return err
	})
	m.Content = text.String()
	return err
}

// part is one part of a message's content.
type part struct {
	text   string
	isText bool
	media  *Media
}

func parsePart(s *scanner, field string) (p part, err error) {
	kind := ""
	err = s.object(field, func(key string) (err error) {
		switch key {
		case "type":
			kind, err = s.text(field + ".type")
		case "text":
			p.text, err = s.text(field + ".text")
		default:
			of, ok := mediaFields[key]
			if !ok {
				return s.skip()
			}
			var ref []byte
			if ref, err = parseRef(s, field+"."+key); err == nil && ref != nil {
				p.media = &Media{Kind: of, Ref: ref, Inline: key == "input_audio" || bytes.HasPrefix(ref, []byte("data:"))}
			}
		}
		return err
	})
	p.isText = kind == "text" || kind == "input_text" || kind == "output_text"
	if p.media != nil && kind == "input_image" {
		p.media.Kind = Image // by its file_id
	}
	return p, err
}

// parseRef reads a reference to media: a string, or an object with a url, a
// file's id, or the data. nil is none.
func parseRef(s *scanner, field string) (ref []byte, err error) {
	switch s.peek() {
	case '"':
		return s.bytes()
	case '{':
	default:
		return nil, s.skip()
	}
	err = s.object(field, func(key string) error {
		switch key {
		case "url", "data", "file_id", "file_data":
			if s.peek() == '"' {
				one, err := s.bytes()
				ref = one
				return err
			}
		}
		return s.skip()
	})
	return ref, err
}

// bytes reads a string, without a copy where it has no escape.
func (s *scanner) bytes() ([]byte, error) {
	start := s.pos
	inside, escaped, err := s.stringSpan()
	if err != nil || !escaped {
		return inside, err
	}
	s.pos = start
	text, err := s.quoted()
	return []byte(text), err
}
