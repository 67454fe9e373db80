// Package formats reads and writes the request traces of others: each format in
// one file or a few, its importer and exporter side by side, and the registry
// that tells them apart by their content.
//
// Open takes any input (canonical or foreign, plain, gzip or zstd, standard
// input, directories) and gives its requests in order of arrival. Convert
// writes them as a canonical trace or in a foreign format.
//
// # Lossless
//
// Exporting an import to its own format gives the source's rows back, equal as
// JSON or CSV values and in the source's order. Three things see to that:
// record.Request.Extra keeps the fields that the model lacks, Exceptions the
// literals that the exporter would write differently (an importer renders each
// row again and compares, see Reconcile), and Row the place in the source.
//
// # Adding a format
//
// Write one file with a Format, registered from init: Detect looks at the
// first rows, NewImporter turns rows into requests, NewExporter the other way
// round. formatstest.Run then holds it to the rules that all formats keep.
//
// # Canonical JSON lines
//
// The format jsonl holds the canonical records as text, exactly: a trace, its
// JSON lines and the trace made of these are the same bytes. The first line is
// the header:
//
//	{"retrace":"requests/1","source":"mooncake","block_size":512,"unit_ns":1000000,"origin_ns":0,…}
//
// Every other line is a request, in order of arrival, with the fields of
// record.Request; what is unknown, absent or zero is left out:
//
//	{"row":0,"id":"…","session":"…","turn":1,"parent":"…","arrival_ns":0,"delay_ns":0,
//	 "input_tokens":6758,"output_tokens":500,"blocks":[0,1,2],"increment":true,
//	 "api":"chat","body":{…},"media":[{"kind":"image","ref":"…","bytes":3}],
//	 "model":"…","kind":"…","priority":1,
//	 "observed":{"status":200,"latency_ns":1,"input_tokens":1,"output_tokens":1,"failed":true},
//	 "extra":{…},"exceptions":[{"field":"timestamp","raw":"5.0"},{"field":"delay"}]}
//
// Times are integer nanoseconds, arrivals offsets from the header's origin. A
// body that cannot stand in a line as it is (line feeds, no JSON, duplicate
// keys) is the string "body_text", or "body_base64" where it is no UTF-8;
// "extra" and "raw" likewise.
//
// # Bodies of Mooncake rows
//
// A row with text_input becomes the body of a completions request, one with
// messages (and tools) that of a chat request: {"prompt": …} or {"messages": …},
// "max_tokens" where output_length is known and above 0, and the members of the
// row's extra, which win. A payload is a body as it stands. Exports give the
// source's fields back; a body that comes from another format goes out as a
// payload.
package formats
