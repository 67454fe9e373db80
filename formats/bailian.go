package formats

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"

	"retrace/record"
)

// bailianBlock is the block size of the published Bailian traces, in tokens.
const bailianBlock = 16

// parentDelay is what a derived file's time_to_parent_chat says.
const parentDelay = "from the end of the parent's answer to the arrival of this turn"

func init() {
	register(&Format{
		Name: "bailian", Title: "Bailian (Qwen) usage trace, session trees",
		Files: "JSON Lines", BlockSize: bailianBlock, Unit: time.Second,
		TimeFields: []string{"timestamp", "time_to_parent_chat"},
		Turns:      TurnsFull, SplitsBlocks: true,
		Carries: FieldID | FieldSession | FieldTurn | FieldParent | FieldArrival | FieldDelay |
			FieldInput | FieldOutput | FieldBlocks | FieldKind,
		Detect:      detectBailian,
		NewImporter: func(c ImportConfig) Importer { return newBailianImporter(c) },
		NewExporter: newBailianExporter,
	})
}

func detectBailian(h *Head) Match {
	switch {
	case h.Has("chat_id", "parent_chat_id"), h.Has("chat_id", "hash_ids"), h.Has("parent_chat_id", "hash_ids"):
		return Sure
	case h.Has("chat_id", "input_length"), h.Has("parent_chat_id", "input_length"):
		return Sure
	}
	return No
}

// bailianImporter reads Bailian rows.
type bailianImporter struct {
	config ImportConfig
	src    *Source
	trees  *chatTrees
	// seen are the chat ids read so far, to notice one that comes twice.
	seen   map[uint64]struct{}
	delays bool
	ids    slab
	row    []Member
}

func newBailianImporter(c ImportConfig) *bailianImporter {
	return &bailianImporter{config: c, trees: newChatTrees(), seen: map[uint64]struct{}{}}
}

// recycle lets the block lists given out so far be overwritten.
func (b *bailianImporter) recycle() { b.ids.recycle() }

// Describe says what a delay means, where there was one.
func (b *bailianImporter) Describe(h *record.Header) {
	h.TimeBasis = "arrival"
	if b.delays {
		h.DelayMeaning = parentDelay
	}
}

// Read reads one file line by line, the first after a look through all files at
// who is whose parent: a parent may come later than its children.
func (b *bailianImporter) Read(src *Source, emit func(*record.Request) error) error {
	if b.src == nil {
		for _, in := range src.files {
			o, err := in.open()
			if err != nil {
				continue // met again when it is the file's turn
			}
			b.readTrees(o)
			if err := o.close(); err != nil {
				return fmt.Errorf("close %s: %w", in.name, err)
			}
		}
	}
	return b.readRows(src, emit)
}

func (b *bailianImporter) readRows(src *Source, emit func(*record.Request) error) error {
	b.src = src
	return src.EachLine(b.decode, emit)
}

// readTrees notes the parents of the file's chats. What cannot be read is left
// to the second reading, which meets it too and says where.
func (b *bailianImporter) readTrees(in io.Reader) {
	lines := newLineReader(in)
	for {
		line, err := lines.next()
		if err != nil {
			return
		}
		if chat, parent, ok := chatAndParent(line); ok {
			b.trees.add(chat, parent)
		}
	}
}

// chatAndParent finds the two ids of a row that has both and is no root.
func chatAndParent(line []byte) (chat, parent uint64, ok bool) {
	rest, found := bytes.CutPrefix(line, []byte(`{"chat_id": `))
	if found {
		id, rest, found := bytes.Cut(rest, []byte(`, "parent_chat_id": `))
		end := bytes.IndexByte(rest, ',')
		if found && end > 0 {
			chat, errChat := strconv.ParseUint(string(id), 10, 64)
			parent, errParent := strconv.ParseUint(string(rest[:end]), 10, 64)
			if errChat == nil && (errParent == nil || string(rest[:end]) == "-1") {
				return chat, parent, errParent == nil
			}
		}
	}
	members, err := ParseObject(bytes.TrimSpace(line))
	if err != nil {
		return 0, 0, false
	}
	rawChat, _ := Find(members, "chat_id")
	rawParent, _ := Find(members, "parent_chat_id")
	if !isNumber(rawChat) || !isNumber(rawParent) {
		return 0, 0, false
	}
	chat, errChat := ParseID(rawChat)
	parent, errParent := ParseID(rawParent)
	return chat, parent, errChat == nil && errParent == nil
}

// decode reads one row.
func (b *bailianImporter) decode(line []byte, r *record.Request) error {
	members, err := ParseObject(line)
	if err != nil {
		return b.src.jsonFault(err)
	}
	d := bailianRow{b: b, r: r}
	for _, f := range members {
		if err := d.field(f); err != nil {
			return err
		}
	}
	if err := d.finish(); err != nil {
		return err
	}
	if _, ok := Find(members, "turn"); !ok {
		// The turn may yet be counted, but is not the row's.
		r.Exceptions = append(r.Exceptions, record.Exception{Field: "turn"})
	}
	again := *r
	if d.plainIDs { // as an exporter writes them: nothing to compare
		again.Blocks = nil
		i := indexOf(members, "hash_ids")
		members = append(members[:i], members[i+1:]...)
	}
	b.row, err = renderBailian(b.row[:0], &again, b.config.Unit)
	if err != nil {
		return err
	}
	r.Exceptions = append(r.Exceptions, Reconcile(members, b.row, EqualValue)...)
	return nil
}
