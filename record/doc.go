// Package record holds Retrace's record types and the container they are
// stored in.
//
// A Request is one request to be made, a Result one as it went, a Series one
// metric of the server. A Writer or FileWriter puts them into a container, a
// Reader gives them back as they were, what a damaged file still holds of them
// too. docs/format.md draws the container byte by byte. A Sorter orders more
// requests than fit into memory.
package record
