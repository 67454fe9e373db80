package simserver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
)

// Faults says how often each kind of fault befalls a generation request. The
// zero value is none.
type Faults struct {
	kinds []fault
}

// fault is a kind and its probability.
type fault struct {
	kind        string
	probability float64
}

// faultStage says when a fault strikes.
type faultStage uint8

const (
	atOnce    faultStage = iota // instead of an answer
	midStream                   // after half of the output
)

// faultKind describes one kind.
type faultKind struct {
	stage   faultStage
	status  int // of a plain HTTP error; 0 for the others
	meaning string
}

// faultKinds are all kinds; docs/simserver.md has the same table, with the
// error classes that they lead to.
var faultKinds = map[string]faultKind{
	"302": {atOnce, 302, "a redirect to a place that does not exist"},
	"400": {atOnce, 400, "bad request, with an error object"},
	"404": {atOnce, 404, "not found, with an error object"},
	"429": {atOnce, 429, "too many requests, with Retry-After: 1"},
	"500": {atOnce, 500, "internal error, with an error object"},
	"503": {atOnce, 503, "service unavailable, with an error object"},

	"reset":       {atOnce, 0, "the connection is reset before any answer"},
	"close":       {atOnce, 0, "the connection is closed before any answer"},
	"hang":        {atOnce, 0, "no answer until the client goes away"},
	"html":        {atOnce, 0, "status 200 and an HTML page"},
	"error_body":  {atOnce, 0, "status 200 and an error object as the whole body"},
	"cut":         {midStream, 0, "the connection is closed in the middle of the answer"},
	"end":         {midStream, 0, "the answer ends cleanly in the middle, without finish_reason and [DONE]"},
	"stall":       {midStream, 0, "the answer stops in the middle, until the client goes away"},
	"error":       {midStream, 0, "an error object in an event, then [DONE]"},
	"error_event": {midStream, 0, "an event of type error, then the end"},
	"badjson":     {midStream, 0, "an event that is not JSON, and the rest of the stream"},
	"no_done":     {midStream, 0, "a whole answer without [DONE]"},
}

// FaultKinds lists the kinds of faults, sorted.
func FaultKinds() []string {
	names := make([]string, 0, len(faultKinds))
	for name := range faultKinds {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// FaultMeaning says in a few words what a kind of fault does; "" for no kind.
func FaultMeaning(kind string) string { return faultKinds[kind].meaning }

// ParseFaults reads a list of kind:probability, separated by commas, as
// "429:0.1,cut:0.05". The probabilities are of all generation requests and may
// add up to 1 at most. An empty list is no faults.
func ParseFaults(spec string) (Faults, error) {
	var f Faults
	if strings.TrimSpace(spec) == "" {
		return f, nil
	}
	for item := range strings.SplitSeq(spec, ",") {
		kind, value, ok := strings.Cut(strings.TrimSpace(item), ":")
		if !ok {
			return Faults{}, fmt.Errorf("parse faults: item %q: found no ':', expected kind:probability", item)
		}
		p, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return Faults{}, fmt.Errorf("parse faults: item %q: found probability %q, expected a number from 0 to 1", item, value)
		}
		f.kinds = append(f.kinds, fault{kind, p})
	}
	if err := f.validate(); err != nil {
		return Faults{}, err
	}
	return f, nil
}

func (f Faults) validate() error {
	sum, seen := 0.0, map[string]bool{}
	for _, k := range f.kinds {
		if _, ok := faultKinds[k.kind]; !ok {
			return fmt.Errorf("parse faults: found kind %q, expected one of %s", k.kind, strings.Join(FaultKinds(), ", "))
		}
		if seen[k.kind] {
			return fmt.Errorf("parse faults: kind %q: found twice, expected once", k.kind)
		}
		seen[k.kind] = true
		if math.IsNaN(k.probability) || k.probability < 0 || k.probability > 1 {
			return fmt.Errorf("parse faults: kind %q: found probability %v, expected 0 to 1", k.kind, k.probability)
		}
		sum += k.probability
	}
	if sum > 1+1e-9 {
		return fmt.Errorf("parse faults: found probabilities that add up to %v, expected at most 1", sum)
	}
	return nil
}

// String is the list that ParseFaults reads.
func (f Faults) String() string {
	items := make([]string, len(f.kinds))
	for i, k := range f.kinds {
		items[i] = k.kind + ":" + strconv.FormatFloat(k.probability, 'g', -1, 64)
	}
	return strings.Join(items, ",")
}

// pick draws the fault of the n-th generation request, "" for none: a pure
// function of the seed and n.
func (f Faults) pick(seed, n uint64) string {
	if len(f.kinds) == 0 {
		return ""
	}
	u := rand.New(rand.NewPCG(seed, n)).Float64()
	for _, k := range f.kinds {
		if u -= k.probability; u < 0 {
			return k.kind
		}
	}
	return ""
}
