package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// The columns of a series chunk, in the order of their names.
const (
	colLabelCount = iota
	colLabelKey
	colLabelValue
	colSeriesName
	colPointCount
	colPointTime
	colPointValue
	seriesColumns
)

var seriesNames = [seriesColumns]string{"lc", "lk", "lv", "na", "pc", "ti", "va"}

// seriesCodec turns series into a chunk item and back.
type seriesCodec struct {
	in, out [seriesColumns][]byte
	ints    intColumn
	strings stringColumn
	recs    []Series // decoded
}

// encode appends the item of recs to dst.
func (c *seriesCodec) encode(dst []byte, h chunkHead, recs []Series) []byte {
	var names, keys, values []string
	var labels, points, times []int64
	va := c.in[colPointValue][:0]
	for i := range recs {
		r := &recs[i]
		names = append(names, r.Name)
		labels = append(labels, int64(len(r.Labels)))
		for _, k := range sortedKeys(r.Labels) {
			keys, values = append(keys, k), append(values, r.Labels[k])
		}
		points = append(points, int64(len(r.Times)))
		for k := range r.Times {
			times = append(times, int64(r.Times[k]))
			va = binary.LittleEndian.AppendUint64(va, math.Float64bits(r.Values[k]))
		}
	}
	c.in[colLabelCount] = c.ints.append(c.in[colLabelCount][:0], labels, 0)
	c.in[colLabelKey] = c.strings.append(c.in[colLabelKey][:0], keys)
	c.in[colLabelValue] = c.strings.append(c.in[colLabelValue][:0], values)
	c.in[colSeriesName] = c.strings.append(c.in[colSeriesName][:0], names)
	c.in[colPointCount] = c.ints.append(c.in[colPointCount][:0], points, 0)
	c.in[colPointTime] = c.ints.append(c.in[colPointTime][:0], times, noValue)
	c.in[colPointValue] = va
	return appendColumns(h.append(dst), seriesNames[:], c.in[:])
}

// at is the record i of the chunk that decode read, good until the next.
func (c *seriesCodec) at(i int) *Series { return &c.recs[i] }

// decode reads the columns at cur, which is behind the chunk's head. What the
// records point to is their own.
func (c *seriesCodec) decode(cur *cursor, h chunkHead) error {
	size := len(cur.b)
	if err := readColumns(cur, seriesNames[:], c.out[:]); err != nil {
		return fmt.Errorf("decode series chunk %d: %w", h.seq, err)
	}
	c.recs = blanks(c.recs, h.count, Series{})
	if err := c.decodeColumns(c.recs, size); err != nil {
		return fmt.Errorf("decode series chunk %d: %w", h.seq, err)
	}
	return nil
}

func (c *seriesCodec) decodeColumns(recs []Series, size int) error {
	names := make([]string, len(recs))
	if err := c.strings.decode(&cursor{b: c.out[colSeriesName]}, names); err != nil {
		return fmt.Errorf("column na: %w", err)
	}
	labels, nLabels, err := c.counts(colLabelCount, len(recs), size)
	if err != nil {
		return err
	}
	keys, values := make([]string, nLabels), make([]string, nLabels)
	if err := c.strings.decode(&cursor{b: c.out[colLabelKey]}, keys); err != nil {
		return fmt.Errorf("column lk: %w", err)
	}
	if err := c.strings.decode(&cursor{b: c.out[colLabelValue]}, values); err != nil {
		return fmt.Errorf("column lv: %w", err)
	}
	va := c.out[colPointValue]
	points, nPoints, err := c.counts(colPointCount, len(recs), len(va)/8)
	if err != nil {
		return err
	}
	if len(va) != 8*nPoints {
		return fmt.Errorf("column va: %d bytes for %d points", len(va), nPoints)
	}
	times := make([]int64, nPoints)
	if err := c.ints.decode(&cursor{b: c.out[colPointTime]}, times, noValue); err != nil {
		return fmt.Errorf("column ti: %w", err)
	}
	for i := range recs {
		recs[i] = Series{Name: names[i]}
		for k := range keys[:labels[i]] {
			if recs[i].Labels == nil {
				recs[i].Labels = make(map[string]string)
			}
			recs[i].Labels[keys[k]] = values[k]
		}
		keys, values = keys[labels[i]:], values[labels[i]:]
		recs[i].points(times[:points[i]], va)
		times, va = times[points[i]:], va[8*points[i]:]
	}
	return nil
}

// points fills in the series' points.
func (s *Series) points(times []int64, values []byte) {
	if len(times) == 0 {
		return
	}
	s.Times, s.Values = make([]time.Duration, len(times)), make([]float64, len(times))
	for k, t := range times {
		s.Times[k] = time.Duration(t)
		s.Values[k] = math.Float64frombits(binary.LittleEndian.Uint64(values[8*k:]))
	}
}

// counts reads a column of counts whose sum is at most most.
func (c *seriesCodec) counts(col, n, most int) (counts []int64, total int, err error) {
	counts = make([]int64, n)
	if err := c.ints.decode(&cursor{b: c.out[col]}, counts, 0); err != nil {
		return nil, 0, fmt.Errorf("column %s: %w", seriesNames[col], err)
	}
	for i, v := range counts {
		if v < 0 || v > int64(most-total) {
			return nil, 0, fmt.Errorf("column %s: series %d: count %d where at most %d are left", seriesNames[col], i, v, most-total)
		}
		total += int(v)
	}
	return counts, total, nil
}
