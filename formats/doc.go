// Package formats reads and writes the request traces of others: one file per
// format, its importer and exporter side by side, and the registry that tells
// them apart by their content.
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
package formats
