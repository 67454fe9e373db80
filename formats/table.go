package formats

import "strconv"

// TableRow is one line of --list-formats.
type TableRow struct {
	Name, Title, Files string
	// Direction is "read", "write" or "read, write".
	Direction string
	// Block is the block size in tokens, Unit that of times, "–" where there is none.
	Block, Unit string
	// Carries names the parts of a request that an export holds.
	Carries string
}

// Table lists every format, Retrace's own first.
func Table() []TableRow {
	own := tableRow(containerFormat)
	own.Direction = "read, write"
	rows := []TableRow{own}
	for _, f := range registry {
		rows = append(rows, tableRow(f))
	}
	return rows
}

func tableRow(f *Format) TableRow {
	r := TableRow{Name: f.Name, Title: f.Title, Files: f.Files, Block: "–", Unit: "–", Carries: f.Carries.String()}
	switch {
	case f.NewImporter != nil && f.NewExporter != nil:
		r.Direction = "read, write"
	case f.NewImporter != nil:
		r.Direction = "read"
	default:
		r.Direction = "write"
	}
	if f.BlockSize > 0 {
		r.Block = strconv.Itoa(f.BlockSize)
	}
	if f.Unit > 0 {
		r.Unit = unitShort(f.Unit)
	}
	return r
}
