package record

// The bounds of a chunk. A writer keeps them and a reader relies on them: what
// goes beyond is refused before anything is allocated for it.
const (
	// maxRecords is the number of records at which a chunk is closed.
	maxRecords = 4096
	// softChunkBytes is what the records of a chunk may hold in memory (block
	// ids, bodies, gaps, …) before the chunk is closed early.
	softChunkBytes = 8 << 20
	// maxRecordBytes is what one record may hold.
	maxRecordBytes = 64 << 20
	// spanBytes is what a string that was cut out of a body counts for in its
	// chunk, and maxSpans their number: one body has but 1,024 of 64 KiB.
	spanBytes = 32
	maxSpans  = softChunkBytes / spanBytes
	// maxItemBytes bounds a decompressed item, and what its columns expand to.
	maxItemBytes = softChunkBytes + maxRecordBytes + 8<<20
	// maxFrameBytes bounds a compressed frame; raw blocks add 3 bytes in 128 KiB.
	maxFrameBytes = maxItemBytes + maxItemBytes/1024
)
