package record

import (
	"strconv"
	"time"
)

// Unknown marks a count that the source or the server did not tell. It is not zero.
const Unknown int64 = -1

// NoTime marks a moment that did not happen or is not known. Real offsets may
// be negative (a probe before the schedule's origin), so it is the smallest
// Duration rather than -1.
const NoTime time.Duration = -1 << 63

// Request is one request to be made: an element of a trace.
//
// A zero Request claims zero tokens and arrival 0; start from NewRequest,
// which starts from "unknown" instead.
type Request struct {
	// ID is the request's name in its source, unique within the trace, or ""
	// where the source names none; Key then falls back to the row number.
	ID string
	// Session groups the turns of one conversation; "" where the request stands alone.
	Session string
	// Turn counts from 1 within a session; 0 where the source does not say.
	Turn int
	// Parent is the ID (Key) of the turn that this one follows; "" for a root
	// or where the previous turn of the session is meant.
	Parent string

	// Arrival is the offset from the trace's origin (Header.Origin), or NoTime
	// where the source gives only Delay.
	Arrival time.Duration
	// Delay is the time from the parent's end to this send, or NoTime.
	Delay time.Duration

	// InputTokens is the prompt's length, OutputTokens the wanted length of
	// the answer, in tokens, or Unknown. For an Increment, InputTokens and
	// Blocks are those of the new part only.
	InputTokens  int64
	OutputTokens int64
	// Blocks are the ids of the prompt's prefix blocks, of Header.BlockSize
	// tokens each, the last maybe partial. A block's identity is its id and
	// those of all its predecessors.
	Blocks []uint64
	// Increment says that the turn holds only what is new in its session, not
	// the whole prompt.
	Increment bool

	// API names the API of Body ("completions", "chat", …); Body is the raw
	// JSON of a whole request, never re-encoded; nil where there is none.
	API  string
	Body []byte
	// Media lists what the prompt refers to beyond text.
	Media []Media

	// Model is the model asked for at the source, Kind the source's own class
	// of request (Bailian's type, BurstGPT's log type).
	Model string
	Kind  string
	// Priority is the scheduling priority, nil where the source gives none.
	Priority *int64

	// Observed is what the source saw when it served the request.
	Observed Observed

	// Row is the position in the source, from 0, over all its files.
	Row int64
	// Extra holds the fields of the source's row that the model lacks, as one
	// raw JSON object, nil where there are none.
	Extra []byte
	// Exceptions are the source's literals that the format's exporter would
	// not give back from the fields above.
	Exceptions []Exception
}

// NewRequest is a Request of which nothing is known.
func NewRequest() Request {
	return Request{
		Arrival:      NoTime,
		Delay:        NoTime,
		InputTokens:  Unknown,
		OutputTokens: Unknown,
		Observed:     NewObserved(),
	}
}

// Key is the request's name within its trace: ID, or the source row's number.
func (r *Request) Key() string {
	if r.ID != "" {
		return r.ID
	}
	return strconv.FormatInt(r.Row, 10)
}

// Observed is what the source recorded of its own answer.
type Observed struct {
	// Status is the HTTP status, 0 where unknown.
	Status int
	// Latency is from arrival to the full answer, or NoTime.
	Latency time.Duration
	// InputTokens and OutputTokens are as the source counted, or Unknown.
	InputTokens  int64
	OutputTokens int64
	// Failed marks a request that failed at the source.
	Failed bool
}

// NewObserved is an Observed of which nothing is known.
func NewObserved() Observed {
	return Observed{Latency: NoTime, InputTokens: Unknown, OutputTokens: Unknown}
}

// Media is one image, audio clip or video that a prompt refers to.
type Media struct {
	// Kind is "image", "audio", "video" or "file".
	Kind string
	// Ref is a URL or a digest of the content; Bytes its size, or Unknown.
	Ref   string
	Bytes int64
}

// Exception is one field of a source row whose literal the model does not
// give back: 61.11400000001, 5.0, null, or a field that is absent where the
// exporter would write one.
type Exception struct {
	// Field is the source's name of it, or a name that the format chose for an
	// oddity of the whole row.
	Field string
	// Raw is the literal as it stood in the source; nil says absent.
	Raw []byte
}
