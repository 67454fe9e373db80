package formats

import (
	"bytes"
	"strconv"
	"time"

	"retrace/record"
)

// plusMark, after a column's name, marks an exception that is not the whole
// literal but what follows the exporter's: ".0" where a file writes 5.0.
const plusMark = "+"

// burstRow decodes the rows of one file.
type burstRow struct {
	b      *burstImporter
	src    *Source
	layout csvLayout
	r      *record.Request
	extra  []Member
}

// decode reads one row into r.
func (d *burstRow) decode(cells [][]byte, text []byte, r *record.Request) error {
	if err := d.layout.check(d.src, cells, text); err != nil {
		return err
	}
	d.r = r
	d.extra = d.extra[:0]
	total := []byte(nil)
	for i, cell := range cells {
		if d.layout.fields[i] == colTotal {
			total = cell
			continue
		}
		if err := d.cell(i, cell); err != nil {
			return err
		}
	}
	r.Observed.Failed = r.OutputTokens == 0
	if len(d.extra) > 0 {
		r.Extra = AppendObject(nil, d.extra)
	}
	if total == nil {
		return nil
	}
	return d.total(total)
}

// cell reads the cell of column i.
func (d *burstRow) cell(i int, cell []byte) error {
	switch field := d.layout.fields[i]; field {
	case colTime:
		if len(bytes.TrimSpace(cell)) == 0 {
			return d.src.faultOf(field, cell, ErrNoTime)
		}
		return d.time(field, cell, d.b.config.Unit, &d.r.Arrival)
	case colElapsed:
		return d.time(field, cell, time.Second, &d.r.Observed.Latency)
	case colRequest:
		return d.count(field, cell, &d.r.InputTokens)
	case colResponse:
		return d.count(field, cell, &d.r.OutputTokens)
	case colSession:
		d.r.Session = string(cell)
	case colModel:
		d.r.Model = d.b.word(cell)
	case colKind:
		d.r.Kind = d.b.word(cell)
	default:
		d.src.Unknown(d.layout.names[i])
		if len(cell) > 0 {
			d.extra = append(d.extra, Member{d.layout.names[i], AppendString(nil, string(cell))})
		}
	}
	return nil
}

// time reads a time; an empty cell is no time.
func (d *burstRow) time(field string, cell []byte, unit time.Duration, to *time.Duration) error {
	bare := bytes.TrimSpace(cell)
	if len(bare) == 0 {
		d.keep(field, cell, nil)
		return nil
	}
	t, _, err := ParseTime(bare, unit)
	if err != nil {
		f := d.src.Fault(field, cell, "a number from 0 up ("+unitName(unit)+")")
		f.Err = err
		return f
	}
	*to = t
	d.b.buf = AppendTime(d.b.buf[:0], t, unit)
	d.keep(field, cell, d.b.buf)
	return nil
}

// count reads a number of tokens; an empty cell is an unknown one.
func (d *burstRow) count(field string, cell []byte, to *int64) error {
	if n, ok := plainCount(cell); ok {
		*to = n
		return nil
	}
	bare := bytes.TrimSpace(cell)
	if len(bare) == 0 {
		d.keep(field, cell, nil)
		return nil
	}
	n, err := ParseCount(bare)
	if err != nil {
		f := d.src.Fault(field, cell, expectCount)
		f.Err = err
		return f
	}
	*to = n
	d.keep(field, cell, strconv.AppendInt(nil, n, 10))
	return nil
}

// total checks the column that the others give, and keeps it where they do not.
func (d *burstRow) total(cell []byte) error {
	if bare := bytes.TrimSpace(cell); len(bare) > 0 {
		if _, err := ParseCount(bare); err != nil {
			f := d.src.Fault(colTotal, cell, expectCount)
			f.Err = err
			return f
		}
	}
	d.keep(colTotal, cell, countCell(burstTotal(d.r)))
	return nil
}

const expectCount = "an integer from 0 up"

// burstTotal is what the total should be, Unknown where a part is.
func burstTotal(r *record.Request) int64 {
	if r.InputTokens == record.Unknown || r.OutputTokens == record.Unknown {
		return record.Unknown
	}
	return r.InputTokens + r.OutputTokens
}

// keep notes the literal of a cell where the exporter would write another.
func (d *burstRow) keep(field string, cell, rendered []byte) {
	if bytes.Equal(cell, rendered) {
		return
	}
	if rest, ok := bytes.CutPrefix(cell, rendered); ok && isZeros(rendered, rest) {
		d.r.Exceptions = append(d.r.Exceptions, record.Exception{Field: field + plusMark, Raw: bytes.Clone(rest)})
		return
	}
	d.r.Exceptions = append(d.r.Exceptions, record.Exception{Field: field, Raw: append([]byte{}, cell...)})
}

// isZeros says that rest only adds decimal zeros to number.
func isZeros(number, rest []byte) bool {
	if len(number) == 0 || len(rest) == 0 || (rest[0] == '.') == (bytes.IndexByte(number, '.') >= 0) {
		return false
	}
	return len(bytes.Trim(bytes.TrimPrefix(rest, []byte(".")), "0")) == 0
}
