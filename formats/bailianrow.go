package formats

import (
	"fmt"
	"strconv"
	"time"

	"retrace/record"
)

// bailianRow gathers the fields of one row.
type bailianRow struct {
	b       *bailianImporter
	r       *record.Request
	chat    uint64
	parent  uint64
	hasChat bool
	child   bool
	named   bool // session_id is there
	// plainIDs says that hash_ids stood there as an exporter writes them.
	plainIDs bool
	extra    []Member
}

// field takes one member; null is as good as absent.
func (d *bailianRow) field(f Member) (err error) {
	src, r := d.b.src, d.r
	if isNull(f.Raw) {
		if !bailianKnows(f.Key) {
			d.leave(f)
		}
		return nil
	}
	switch f.Key {
	case "chat_id":
		d.chat, err = d.id(f)
		d.hasChat = true
		r.ID = strconv.FormatUint(d.chat, 10)
	case "parent_chat_id":
		if string(f.Raw) == "-1" {
			return nil
		}
		d.parent, err = d.id(f)
		d.child = true
		r.Parent = strconv.FormatUint(d.parent, 10)
	case "timestamp":
		r.Arrival, err = src.Time(f, d.b.config.Unit)
	case "time_to_parent_chat":
		return d.delay(f)
	case "input_length":
		r.InputTokens, err = src.Count(f)
	case "output_length":
		r.OutputTokens, err = src.Count(f)
	case "type":
		r.Kind, err = d.text(f)
	case "turn":
		var n int64
		n, err = src.Count(f)
		r.Turn = int(n)
	case "hash_ids":
		if r.Blocks, d.plainIDs = plainIDs(f.Raw, &d.b.ids); !d.plainIDs {
			r.Blocks, err = src.BlockIDs(f)
		}
	case "session_id":
		return d.session(f)
	default:
		d.leave(f)
	}
	return err
}

var bailianFields = map[string]bool{
	"chat_id": true, "parent_chat_id": true, "timestamp": true, "input_length": true, "output_length": true,
	"type": true, "turn": true, "hash_ids": true, "session_id": true, "time_to_parent_chat": true,
}

func bailianKnows(key string) bool { return bailianFields[key] }

// leave keeps a field that the format does not define.
func (d *bailianRow) leave(f Member) {
	d.b.src.Unknown(f.Key)
	d.extra = append(d.extra, f)
}

func (d *bailianRow) id(f Member) (uint64, error) {
	id, err := ParseID(f.Raw)
	if err != nil || !isNumber(f.Raw) {
		expected := "an integer from 0 to 2^64−1"
		if f.Key == "parent_chat_id" {
			expected += ", or -1"
		}
		return 0, d.b.src.Fault(f.Key, f.Raw, expected)
	}
	return id, nil
}

func (d *bailianRow) text(f Member) (string, error) {
	if f.Raw[0] != '"' {
		return "", d.b.src.Fault(f.Key, f.Raw, "a string")
	}
	s, _ := DecodeString(f.Raw)
	return s, nil
}

// delay takes the time since the parent's end. A negative one (the user did
// not wait for the answer) is no delay to replay: only its literal is kept.
func (d *bailianRow) delay(f Member) (err error) {
	if isNumber(f.Raw) && f.Raw[0] == '-' {
		if _, _, err := ParseTime(f.Raw[1:], d.b.config.Unit); err == nil {
			return nil
		}
	}
	d.r.Delay, err = d.b.src.Time(f, d.b.config.Unit)
	return err
}

// session takes a derived file's own session, which overrides the tree's.
func (d *bailianRow) session(f Member) error {
	switch {
	case f.Raw[0] == '"':
		d.r.Session, _ = DecodeString(f.Raw)
	case isNumber(f.Raw):
		d.r.Session = string(f.Raw)
	default:
		return d.b.src.Fault(f.Key, f.Raw, "a string or a number")
	}
	d.named = d.r.Session != ""
	return nil
}

// finish checks the row as a whole and finds its session.
func (d *bailianRow) finish() error {
	r := d.r
	if d.hasChat && d.child && d.chat == d.parent {
		return d.b.src.Fault("parent_chat_id", []byte(r.Parent), "another chat than the row's own")
	}
	if len(r.Blocks) > 0 && !fitsBlocks(r.InputTokens, len(r.Blocks), d.b.config.BlockSize) {
		return d.b.blockFault(r.InputTokens, len(r.Blocks))
	}
	r.Observed.Failed = r.InputTokens == 0 || r.OutputTokens == 0
	if r.Delay != record.NoTime {
		d.b.delays = true
	}
	if len(d.extra) > 0 {
		r.Extra = AppendObject(nil, d.extra)
	}
	if d.hasChat {
		if _, twice := d.b.seen[d.chat]; twice {
			d.b.src.Warn("chat_id occurs more than once: sessions may be mixed (convert files of different traces apart)")
		}
		d.b.seen[d.chat] = struct{}{}
	}
	if !d.named && (d.hasChat || d.child) {
		from := d.chat
		if d.child {
			from = d.parent
		}
		r.Session = strconv.FormatUint(d.b.trees.root(from), 10)
	}
	return nil
}

// blockFault is the error of a row whose blocks do not fit its length.
func (b *bailianImporter) blockFault(tokens int64, n int) error {
	if tokens == record.Unknown {
		return b.src.Fault("input_length", []byte("none"), "the length of the prompt that has hash_ids")
	}
	m := mooncakeImporter{config: b.config, src: b.src}
	return m.blockFault(tokens, n)
}

// renderBailian is the row that stands for r, whose Arrival is on the source's clock.
func renderBailian(row []Member, r *record.Request, unit time.Duration) ([]Member, error) {
	add := func(key string, raw []byte) { row = append(row, Member{key, raw}) }
	if r.ID != "" {
		add("chat_id", []byte(r.ID))
	}
	parent := r.Parent
	if parent == "" {
		parent = "-1"
	}
	add("parent_chat_id", []byte(parent))
	if r.Arrival != record.NoTime {
		add("timestamp", AppendTime(nil, r.Arrival, unit))
	}
	if r.InputTokens != record.Unknown {
		add("input_length", strconv.AppendInt(nil, r.InputTokens, 10))
	}
	if r.OutputTokens != record.Unknown {
		add("output_length", strconv.AppendInt(nil, r.OutputTokens, 10))
	}
	if r.Kind != "" {
		add("type", AppendString(nil, r.Kind))
	}
	if r.Turn != 0 {
		add("turn", strconv.AppendInt(nil, int64(r.Turn), 10))
	}
	if len(r.Blocks) > 0 {
		add("hash_ids", appendIDs(nil, r.Blocks))
	}
	if r.Delay != record.NoTime {
		add("time_to_parent_chat", AppendTime(nil, r.Delay, unit))
	}
	if r.Extra == nil {
		return row, nil
	}
	extra, err := ParseObject(r.Extra)
	if err != nil {
		return row, fmt.Errorf("read leftovers: %w", err)
	}
	return append(row, extra...), nil
}
