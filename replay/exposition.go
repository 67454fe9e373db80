package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"retrace/record"
)

const (
	// metricsPage bounds a page of metrics, decompressed: a vLLM server's has
	// some 40 kB, one with many models and engines some MB.
	metricsPage = 16 << 20
	// metricsLine bounds a line that is kept, metricsSamples their number.
	metricsLine    = 8 << 10
	metricsSamples = 1024
	// figureLimit is beyond every count of tokens or requests, and has all whole
	// numbers below it exact.
	figureLimit = 1 << 53
)

var (
	errPageTooLarge = fmt.Errorf("the page has more than %d bytes", metricsPage)
	errManySamples  = fmt.Errorf("the page has more than %d of the known metrics", metricsSamples)
	errNoPage       = errors.New("the page is no Prometheus text")
)

// sample is one figure of a page of metrics.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// readMetrics reads the known metrics of a page in the Prometheus text format.
// Only their lines are parsed, and by expfmt: a page has hundreds of others,
// and is read while the run goes on. A figure that is no number, or none that
// these metrics can have (below 0, or beyond figureLimit), is left out.
// The page of a server that has counted nothing yet may have none.
func readMetrics(r io.Reader) ([]sample, error) {
	kept, err := knownLines(&bounded{r: r, left: metricsPage})
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(kept))
	if err != nil {
		return nil, fmt.Errorf("parse metrics: %w", err)
	}
	var list []sample
	for name, family := range families {
		for _, m := range family.GetMetric() {
			v := m.GetUntyped().GetValue()
			if math.IsNaN(v) || v < 0 || v > figureLimit {
				continue
			}
			labels := make(map[string]string, len(m.GetLabel())+1)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			list = append(list, sample{name: name, labels: labels, value: v})
		}
	}
	return list, nil
}

// knownLines are the samples of the known metrics, without the comments, so
// that all are of no type for the parser: our table has the types.
func knownLines(r io.Reader) ([]byte, error) {
	var kept []byte
	n, comments, others := 0, 0, 0
	lines := bufio.NewReaderSize(r, metricsLine)
	for {
		line, err := lines.ReadSlice('\n')
		name, comment, blank := metricName(line), bytes.HasPrefix(line, []byte("# ")), len(bytes.TrimSpace(line)) == 0
		known := record.MetricOf(name) != record.NoMetric
		if errors.Is(err, bufio.ErrBufferFull) {
			if known {
				return nil, fmt.Errorf("%s: the line has more than %d bytes", name, metricsLine)
			}
			err = skipLine(lines)
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		switch {
		case known:
			if n++; n > metricsSamples {
				return nil, errManySamples
			}
			kept = append(append(kept, bytes.TrimRight(line, "\r\n")...), '\n')
		case comment:
			comments++
		case !blank:
			others++
		}
		if err == io.EOF {
			break
		}
	}
	if n == 0 && comments == 0 && others > 0 {
		return nil, errNoPage
	}
	return kept, nil
}

// skipLine reads to the end of a line that is longer than the buffer.
func skipLine(r *bufio.Reader) error {
	for {
		if _, err := r.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// metricName is the name that a sample's line begins with.
func metricName(line []byte) string {
	if i := bytes.IndexAny(line, "{ \t"); i >= 0 {
		return string(line[:i])
	}
	return ""
}

// bounded fails where there is more than left bytes.
type bounded struct {
	r    io.Reader
	left int64
}

// Read is io.Reader's.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errPageTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
