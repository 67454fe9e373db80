package record

// The columns of a request chunk, in the order of their names, which is the
// order that deterministic CBOR asks for.
const (
	colAPI = iota
	colArrival
	colBackHigh
	colBackLow
	colBlockIDs
	colBody
	colSpans
	colBlockCount
	colDelay
	colExceptionCount
	colExceptionField
	colExceptionRaw
	colExtra
	colID
	colInputHigh
	colInputLow
	colIncrement
	colSortKey
	colKind
	colMediaBytes
	colMediaCount
	colMediaKind
	colMode
	colMediaRef
	colModel
	colObsFailed
	colOutputHigh
	colObsInput
	colOutputLow
	colObsOutput
	colObsStatus
	colObsLatency
	colParent
	colPriority
	colRow
	colRuns
	colSession
	colShared
	colTurn
	colTurnInput
	requestColumns
)

// requestNames are the columns' names in the file; docs/format.md explains each.
var requestNames = [requestColumns]string{
	colAPI: "ap", colArrival: "ar", colBackHigh: "bh", colBackLow: "bl", colBlockIDs: "bn",
	colBody: "bo", colSpans: "bs", colBlockCount: "bx", colDelay: "de",
	colExceptionCount: "en", colExceptionField: "eo", colExceptionRaw: "er", colExtra: "ex",
	colID: "id", colInputHigh: "ih", colInputLow: "il", colIncrement: "in", colSortKey: "ke", colKind: "ki",
	colMediaBytes: "mb", colMediaCount: "mc", colMediaKind: "mk", colMode: "mo", colMediaRef: "mr", colModel: "mt",
	colObsFailed: "of", colOutputHigh: "oh", colObsInput: "oi", colOutputLow: "ol", colObsOutput: "oo",
	colObsStatus: "os", colObsLatency: "ot",
	colParent: "pa", colPriority: "pr", colRow: "ro", colRuns: "ru",
	colSession: "se", colShared: "sh", colTurn: "tn", colTurnInput: "tu",
}

// columns are the byte strings of one chunk by column; an empty one is left out.
type columns [requestColumns][]byte

func (c *columns) reset() {
	for i := range c {
		c[i] = c[i][:0]
	}
}
