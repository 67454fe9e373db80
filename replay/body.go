package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"retrace/openai"
	"retrace/record"
	"retrace/replay/prompt"
)

// The optional fields of a body, which a server may refuse.
var optionalFields = [...]string{"stream_options", "ignore_eos", "min_tokens", "priority", "stream_include_usage"}

const (
	optStreamOptions = iota
	optIgnoreEOS
	optMinTokens
	optPriority
	optStreamUsage
)

// bodies renders requests. It is safe for concurrent use.
type bodies struct {
	cfg     *Config
	maker   *prompt.Maker
	model   []byte // the JSON string, nil sends none
	extra   []member
	media   *mediaDir
	refused atomic.Uint32 // a bit for each of optionalFields
}

func newBodies(cfg *Config, maker *prompt.Maker, model string) (*bodies, error) {
	extra, err := parseExtra(cfg.Extra)
	b := &bodies{cfg: cfg, maker: maker, extra: extra}
	if model != "" {
		b.setModel(model)
	}
	if err == nil && cfg.Requests.MediaDir != "" {
		b.media, err = openMediaDir(cfg.Requests.MediaDir)
	}
	return b, err
}

// close lets go of the directory of media.
func (b *bodies) close() { b.media.close() }

// setModel names the model, before the first body.
func (b *bodies) setModel(model string) { b.model = openai.AppendQuoted(nil, model) }

// refusedField is the first optional field of body that the message of a refusal
// names, 0 where it names none.
func refusedField(message string, body fields) fields {
	for i, name := range optionalFields {
		if body.has(i) && mentions(message, name) {
			return 1 << i
		}
	}
	return 0
}

// learn keeps fields from all later bodies.
func (b *bodies) learn(f fields) { b.refused.Or(uint32(f)) }

// without are the fields that j's body is not to have. What the request alone
// was refused for is no other's yet: a server that quotes the body in its
// message names every field, whatever is wrong.
func (b *bodies) without(j *job) fields { return fields(b.refused.Load()) | j.without }

// mentions says whether the message has the name as a word of its own, in
// either case: "Priority scheduling is not enabled" is about priority, and
// stream_options is not about stream_options.include_usage's neighbours.
func mentions(message, name string) bool {
	message = strings.ToLower(message)
	for at := 0; ; {
		i := strings.Index(message[at:], name)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(name)
		if (at == 0 || !wordByte(message[at-1])) && (end == len(message) || !wordByte(message[end])) {
			return true
		}
		at = end
	}
}

func wordByte(c byte) bool { return c == '_' || c-'a' < 26 || c-'0' < 10 }

// fields is a set of optionalFields.
type fields uint32

// fieldsFor says which optional fields j's body is to have, being of the form.
func (b *bodies) fieldsFor(j *job, f *form) fields {
	var set fields
	if j.streams && f.usage != noOption {
		set |= 1 << f.usage
	}
	if b.cfg.IgnoreEOS && j.output != record.Unknown {
		set |= f.forced
	}
	if j.priority != nil {
		set |= 1 << optPriority
	}
	return set &^ b.without(j)
}

// stale says whether a body has a field that was refused since.
func (b *bodies) stale(f fields) bool { return f&fields(b.refused.Load()) != 0 }

func (f fields) has(option int) bool { return f&(1<<option) != 0 }

// size is an upper estimate of a body's length.
func (b *bodies) size(j *job) int64 {
	if j.source != nil {
		return int64(len(j.source)) + 256 + b.media.size(j)
	}
	return int64(j.prompt.Tokens())*8 + 512
}

// bodyRoom is more than what a body's members take that are set.
const bodyRoom = 512

// append renders j's body, and says in j what it asks for.
func (b *bodies) append(dst []byte, j *job) ([]byte, error) {
	if j.source == nil {
		j.results = b.expected(j, nil, nil)
		return b.generate(dst, j), nil
	}
	source := j.source
	if j.api != openai.Transcriptions {
		var err error
		if source, err = b.media.inline(source); err != nil {
			return dst, err
		}
	}
	list, last, err := spans(source)
	if err != nil {
		return dst, fmt.Errorf("edit body: %w", err)
	}
	j.results = b.expected(j, source, list)
	set, err := b.members(j, source, list)
	if err != nil {
		return dst, err
	}
	if j.api == openai.Transcriptions {
		return b.appendForm(dst, editMembers(nil, source, list, last, set))
	}
	return editMembers(slices.Grow(dst, len(source)+bodyRoom), source, list, last, set), nil
}

// members are the fields that a body gets beside its prompt. One with a nil
// value is to be taken out of a literal body that has it; list are those that
// the literal body has, which is nil for a generated one.
func (b *bodies) members(j *job, body []byte, list []span) ([]member, error) {
	f := forms[formOf(j.api, body)]
	j.streams = b.cfg.asksStream(j.api, &f, b.ownStream(j.api, body, list), b.value(nil, nil, "stream"))
	j.fields = b.fieldsFor(j, &f)
	if n := b.answers(j.api, body, list); n > 1 && j.output != record.Unknown {
		j.res.WantedOutput = n * j.output
	}
	m := &members{extra: b.extra, list: make([]member, 0, 8+len(b.extra))}
	if model := b.modelOf(j, list); model != nil && f.named {
		m.set("model", model)
	}
	if f.streams && (j.streams || has(list, "stream") || body == nil) {
		m.set("stream", strconv.AppendBool(nil, j.streams))
	}
	if err := b.askUsage(m, j, &f, body, list); err != nil {
		return nil, err
	}
	if err := b.setLengths(m, j, &f, body, list); err != nil {
		return nil, err
	}
	if j.fields.has(optPriority) && !has(list, "priority") {
		m.set("priority", strconv.AppendInt(nil, *j.priority, 10))
	} else if has(list, "priority") && b.without(j).has(optPriority) {
		m.set("priority", nil)
	}
	return append(m.list, b.extra...), nil
}

// ownStream is what a body says of "stream", "" where it says nothing. Transcripts
// of some formats are never streamed, and servers refuse to.
func (b *bodies) ownStream(api openai.API, body []byte, list []span) string {
	own := string(valueOf(body, list, "stream"))
	if own == "" && api == openai.Transcriptions {
		switch jsonString(b.value(body, list, "response_format")) {
		case "verbose_json", "srt", "vtt":
			return "false"
		}
	}
	return own
}

// maxAnswers bounds the answers to one request that are reckoned with.
const maxAnswers = 1 << 20

// answers is how many answers a body asks for, each of the wanted length: "n"
// to each prompt, of which completions may have several.
func (b *bodies) answers(api openai.API, body []byte, list []span) int64 {
	n := min(max(countIn(b.value(body, list, "n")), 1), maxAnswers)
	if form := formOf(api, body); form == openai.Completions {
		n *= int64(max(inputs(b.value(body, list, "prompt")), 1))
	}
	return min(n, maxAnswers)
}

// value is a member's raw value as it is sent, that of --extra before the
// body's own.
func (b *bodies) value(body []byte, list []span, key string) []byte {
	for _, x := range b.extra {
		if x.key == key {
			return x.value
		}
	}
	return valueOf(body, list, key)
}

// askUsage asks a stream for its usage, and keeps what else its body asks of it.
func (b *bodies) askUsage(m *members, j *job, f *form, body []byte, list []span) error {
	switch {
	case f.usage == noOption:
	case !j.fields.has(f.usage):
		m.set(optionalFields[f.usage], nil)
	case f.usage == optStreamUsage:
		m.set(optionalFields[f.usage], []byte("true"))
	default:
		value := []byte(`{"include_usage":true}`)
		if own := valueOf(body, list, optionalFields[f.usage]); len(own) > 0 && own[0] == '{' {
			inner, last, err := spans(own)
			if err != nil {
				return fmt.Errorf("edit stream_options: %w", err)
			}
			value = editMembers(nil, own, inner, last, []member{{"include_usage", []byte("true")}})
		}
		m.set(optionalFields[f.usage], value)
	}
	return nil
}

// setLengths limits and forces the answer's length.
func (b *bodies) setLengths(m *members, j *job, f *form, body []byte, list []span) error {
	if j.output != record.Unknown && len(f.lengths) > 0 && (body == nil || j.trimmed || b.cfg.setsLengths()) {
		value := strconv.AppendInt(nil, j.output, 10)
		if f.within != "" {
			inner, err := within(body, list, f, value)
			if err != nil {
				return err
			}
			m.set(f.within, inner)
		} else {
			for _, key := range lengthKeys(f, list) {
				m.set(key, value)
			}
		}
	}
	if j.fields.has(optIgnoreEOS) {
		m.set("ignore_eos", []byte("true"))
	}
	if j.fields.has(optMinTokens) {
		m.set("min_tokens", strconv.AppendInt(nil, j.output, 10))
	}
	return nil
}

// within is the object that holds a form's limits, with the limit set.
func within(body []byte, list []span, f *form, value []byte) ([]byte, error) {
	own := valueOf(body, list, f.within)
	if len(own) == 0 || own[0] != '{' {
		return append(append([]byte(`{"`+f.lengths[0]+`":`), value...), `,"details":true}`...), nil
	}
	inner, last, err := spans(own)
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", f.within, err)
	}
	return editMembers(nil, own, inner, last, []member{{f.lengths[0], value}}), nil
}

// members is a list of fields that gives way to those of --extra.
type members struct {
	extra []member
	list  []member
}

func (m *members) set(key string, value []byte) {
	for _, x := range m.extra {
		if x.key == key {
			return
		}
	}
	m.list = append(m.list, member{key, value})
}

// Replays says whether requests of the API can be replayed.
func Replays(api openai.API) bool { return api.Path() != "" }

func endpointPath(api openai.API) (string, error) {
	if path := api.Path(); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("api %q is not one that is replayed", api)
}
