package record

import "time"

// State says how a planned request ended. Every planned request has exactly one.
type State uint8

// The states of a Result.
const (
	Completed State = iota + 1
	Failed          // with Result.Class
	Cancelled       // cut by us: the run's end, an interruption
	NotSent         // with Result.Reason
)

// String is the name used in JSON: "completed", "failed", "cancelled", "not_sent".
func (s State) String() string {
	switch s {
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	case Cancelled:
		return "cancelled"
	case NotSent:
		return "not_sent"
	}
	return "unknown"
}

// Mark sets a request beyond the trace's apart from those of the trace.
type Mark uint8

// The marks of a Result.
const (
	Planned  Mark = iota // a request of the trace
	Overhead             // the probe that learns the template's overhead
	WarmUp               // sent before the trace to warm the server
	Probe                // sent beside the trace to sample the server
)

// The error classes of a failed request; exactly one each.
const (
	ClassDNS         = "dns"
	ClassTLS         = "tls"
	ClassConnect     = "connect"
	ClassClientLimit = "client_limit"
	ClassTimeout     = "timeout"
	ClassRedirect    = "redirect"
	ClassHTTP429     = "http_429"
	ClassHTTP4xx     = "http_4xx"
	ClassHTTP5xx     = "http_5xx"
	ClassStreamError = "stream_error"
	ClassTruncated   = "truncated"
	ClassBadResponse = "bad_response"
)

// Result is one request as it went, enough for analysis without its trace.
//
// All times are offsets from the schedule's origin on the monotonic clock, in
// whole microseconds (finer parts are cut when it is stored), NoTime where the
// moment did not come. Counts are Unknown where nobody told.
type Result struct {
	ID      string
	Session string
	Turn    int
	Model   string
	Kind    string
	Mark    Mark
	// Replica is the index of the URL it went to, Shard that of the process.
	Replica int
	Shard   int

	// WantedInput and WantedOutput are the trace's token counts,
	// PredictedHit the prompt tokens that a warm, endless cache would hold.
	WantedInput  int64
	WantedOutput int64
	PredictedHit int64

	// Scheduled is when it should have left, Granted when a concurrency slot
	// was its (Scheduled where no limit waits), Sent when its first byte was
	// handed to the connection.
	Scheduled time.Duration
	Granted   time.Duration
	Sent      time.Duration
	// FirstByte is the response's first byte, FirstOutput the first output
	// (content, reasoning or tool call), FirstContent the first of content
	// proper, LastOutput the last output, End the stream's end.
	FirstByte    time.Duration
	FirstOutput  time.Duration
	FirstContent time.Duration
	LastOutput   time.Duration
	End          time.Duration
	// Connect is how long a fresh connection took (DNS, TCP, TLS), NoTime
	// where a connection was reused.
	Connect time.Duration
	// ServerQueue, ServerPrefill and ServerDecode are durations as the server
	// tells them of this request: waiting to be scheduled, from then to its
	// first token, from there to its last; NoTime where it does not tell.
	ServerQueue   time.Duration
	ServerPrefill time.Duration
	ServerDecode  time.Duration
	// ChoiceFirsts are the first outputs of the choices of an answer of several
	// (n > 1, or several prompts), in the order of their numbers, NoTime for one
	// without output; nil where there is one choice.
	ChoiceFirsts []time.Duration
	// Gaps are those between successive outputs of the stream, first to last.
	Gaps []Gap

	// Status is the HTTP status, 0 where no response head came.
	Status int
	State  State
	// Class is the error class of a failed request, Reason why one was not
	// sent, Error the sentence for people.
	Class  string
	Reason string
	Error  string

	// Tokens as the server's usage tells: prompt, completion, cached part of
	// the prompt, reasoning part of the completion.
	PromptTokens     int64
	CompletionTokens int64
	CachedTokens     int64
	ReasoningTokens  int64
	// MediaTokens is the part of PromptTokens that images, audio and video
	// took, where the server tells it apart.
	MediaTokens int64
	// CountedOutput is the number of output chunks counted here, the stand-in
	// where CompletionTokens is Unknown.
	CountedOutput int64

	FinishReason  string
	BytesSent     int64
	BytesReceived int64
	Reused        bool
	// Attempts counts how often it was made, Tries lists those that failed and
	// were made again because retries were asked for. Sent is that of the first
	// attempt, what follows that of the last.
	Attempts int
	Tries    []Try
	// Output is the answer's text, only where it was asked for.
	Output []byte
}

// Gap is the time between two successive outputs of one stream.
type Gap struct {
	Wait time.Duration
	// Tokens that the later output brought, Unknown where the server does not say.
	Tokens int64
}

// NewResult is a Result of which nothing is known yet.
func NewResult() Result {
	return Result{
		WantedInput: Unknown, WantedOutput: Unknown, PredictedHit: Unknown,
		Scheduled: NoTime, Granted: NoTime, Sent: NoTime, FirstByte: NoTime,
		FirstOutput: NoTime, FirstContent: NoTime, LastOutput: NoTime, End: NoTime, Connect: NoTime,
		ServerQueue: NoTime, ServerPrefill: NoTime, ServerDecode: NoTime,
		PromptTokens: Unknown, CompletionTokens: Unknown, CachedTokens: Unknown,
		ReasoningTokens: Unknown, MediaTokens: Unknown, CountedOutput: Unknown,
	}
}

// OutputTokens is the answer's length in tokens, as the server counted, else
// as counted here; counted says which. Unknown where neither is known.
func (r *Result) OutputTokens() (n int64, counted bool) {
	if r.CompletionTokens != Unknown {
		return r.CompletionTokens, false
	}
	return r.CountedOutput, true
}
