// Package retrace is the root of a toolkit for the request traces of LLM
// serving: everything is a trace.
//
// A foreign trace is converted to one (formats), live traffic is recorded as one
// (record/proxy), a replay reads one and writes a recording of what happened
// (replay), and an analysis reads either (analysis), all over one record type
// and one file format (record). The commands under cmd wire these rooms
// together. Arrows point one way:
//
//	cmd → analysis, replay, formats → record → hashing, openai
package retrace
