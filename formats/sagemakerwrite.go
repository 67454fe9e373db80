package formats

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"retrace/record"
)

// errNoInput marks a row that captured an answer alone.
var errNoInput = errors.New("only the answer was captured, there is no request")

// sageMakerExporter writes capture rows.
type sageMakerExporter struct {
	w      *bufio.Writer
	origin time.Duration
	// same says that the source was a capture too.
	same  bool
	clock exportClock
	buf   []byte
}

func newSageMakerExporter(w io.Writer, h *record.Header) Exporter {
	return &sageMakerExporter{w: bufio.NewWriter(w), origin: h.Origin, same: h.Source == "sagemaker"}
}

// Write writes one line.
func (e *sageMakerExporter) Write(r *record.Request) error {
	when := AppendString(nil, formatWallTime(e.clock.at(r)+e.origin))
	var row []Member
	var err error
	if e.same {
		for _, x := range r.Exceptions {
			if x.Field == pathInferenceTime {
				when = x.Raw
			}
		}
		row, err = restoreCapture(r, when)
	} else {
		row = newCapture(r, when)
	}
	if err != nil {
		return fmt.Errorf("write request %s: %w", r.Key(), err)
	}
	e.buf = append(AppendObject(e.buf[:0], row), '\n')
	_, err = e.w.Write(e.buf)
	return err
}

// Close writes out what is buffered.
func (e *sageMakerExporter) Close() error { return e.w.Flush() }

// restoreCapture puts what the model holds back into the kept row.
func restoreCapture(r *record.Request, when []byte) ([]Member, error) {
	row, err := ParseObject(r.Extra)
	if err != nil {
		return nil, fmt.Errorf("read leftovers: %w", err)
	}
	err = within(row, fieldMetadata, func(meta []Member) ([]Member, error) {
		return append(meta, Member{fieldInferenceTime, when}), nil
	})
	if err != nil || r.Body == nil {
		return row, err
	}
	return row, within(row, fieldCapture, func(sides []Member) ([]Member, error) {
		return sides, within(sides, fieldInput, func(side []Member) ([]Member, error) {
			if indexOf(side, "data") >= 0 {
				return side, nil
			}
			encoding, _ := Find(side, "encoding")
			return append(side, Member{"data", encodeData(r.Body, jsonText(encoding))}), nil
		})
	})
}

// within changes the members of the object in one field of row.
func within(row []Member, field string, change func([]Member) ([]Member, error)) error {
	at := indexOf(row, field)
	if at < 0 {
		return fmt.Errorf("read leftovers: no field %q", field)
	}
	members, err := ParseObject(row[at].Raw)
	if err != nil {
		return fmt.Errorf("read leftovers: field %q: %w", field, err)
	}
	if members, err = change(members); err != nil {
		return err
	}
	row[at].Raw = AppendObject(nil, members)
	return nil
}

// newCapture makes a capture row of a request from another source. A request
// without a body gets one that tells its wanted length and no prompt, and an
// answer that tells the token counts.
func newCapture(r *record.Request, when []byte) []Member {
	body := r.Body
	if body == nil {
		var fields []Member
		if r.Model != "" {
			fields = append(fields, Member{"model", AppendString(nil, r.Model)})
		}
		fields = appendCount(fields, "max_tokens", r.OutputTokens)
		body = AppendObject(nil, fields)
	}
	sides := []Member{{fieldInput, captureSide("INPUT", body)}}
	prompt := r.Observed.InputTokens
	if prompt == record.Unknown {
		prompt = r.InputTokens
	}
	usage := appendCount(nil, "prompt_tokens", prompt)
	if usage = appendCount(usage, "completion_tokens", r.Observed.OutputTokens); usage != nil {
		answer := AppendObject(nil, []Member{{"usage", AppendObject(nil, usage)}})
		sides = append(sides, Member{fieldOutput, captureSide("OUTPUT", answer)})
	}
	return []Member{
		{fieldCapture, AppendObject(nil, sides)},
		{fieldMetadata, AppendObject(nil, []Member{
			{"eventId", AppendString(nil, r.Key())}, {fieldInferenceTime, when},
		})},
		{"eventVersion", []byte(`"0"`)},
	}
}

func captureSide(mode string, body []byte) []byte {
	return AppendObject(nil, []Member{
		{"observedContentType", []byte(`"application/json"`)},
		{"mode", AppendString(nil, mode)},
		{"data", encodeData(body, "JSON")},
		{"encoding", []byte(`"JSON"`)},
	})
}

func appendCount(fields []Member, key string, n int64) []Member {
	if n == record.Unknown {
		return fields
	}
	return append(fields, Member{key, strconv.AppendInt(nil, n, 10)})
}
