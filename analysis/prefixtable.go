package analysis

import (
	"fmt"
	"strconv"

	"retrace/internal/plural"
)

// write prints what caches would hit, for people.
func (c *TracePrefix) write(p *report) {
	p.line("Prefix cache: %s of %s, %s; warm-up %s of the requests",
		plural.Of(c.Blocks, "block"), plural.Of(c.BlockSize, "token"), plural.Of(c.Unique, "different one"), strconv.FormatFloat(c.Warmup, 'g', -1, 64))
	if c.BlockSize != c.TraceBlockSize {
		p.line("The trace's own blocks have %s; one here is %d of them.", plural.Of(c.TraceBlockSize, "token"), c.BlockSize/c.TraceBlockSize)
	}
	if c.Models > 1 {
		how := "which share no blocks"
		if c.ModelsShared {
			how = "whose blocks count as the same"
		}
		p.line("%s, %s.", plural.Of(c.Models, "model"), how)
	}
	p.line("Endless cache: %s by blocks (a partial last block counts as one), %s by tokens, %s by full blocks alone",
		rate(c.Ideal.ByBlock), rate(c.Ideal.ByToken), rate(c.Ideal.ByFull))
	p.line("A server finds less, at most %s by tokens: it caches full blocks only and computes each prompt's last token, so its block, again.",
		rate(c.Ideal.ByServer))
	p.line("")
	c.writeCurve(p)
	c.writeReaches(p)
	c.writeReuse(p)
	c.writePrefixes(p)
}

func (c *TracePrefix) writeCurve(p *report) {
	header := []string{"policy", "blocks", "tokens", "hit tokens", "hit rate by tokens", "of endless"}
	if c.KVBytesPerToken.OK {
		header = append(header, "bytes")
	}
	var rows [][]string
	for _, pt := range c.Curve {
		row := []string{
			string(pt.Policy), strconv.FormatInt(pt.CapacityBlocks, 10), strconv.FormatInt(pt.CapacityTokens, 10),
			strconv.FormatInt(pt.HitTokens, 10), rate(pt.TokenHitRate), ofIdeal(pt.HitTokens, c.Ideal.HitTokens),
		}
		if c.KVBytesPerToken.OK {
			row = append(row, binarySize(pt.CapacityBytes.V))
		}
		rows = append(rows, row)
	}
	p.table(header, rows)
	p.line("")
}

func ofIdeal(hits, ideal int64) string { return percent(Ratio(float64(hits), float64(ideal))) }

func (c *TracePrefix) writeReaches(p *report) {
	if len(c.LRUReaches) == 0 {
		return
	}
	p.line("The smallest LRU caches that hit so much of what the endless one does:")
	for _, r := range c.LRUReaches {
		size := ""
		if r.CapacityBytes.OK {
			size = ", " + binarySize(r.CapacityBytes.V)
		}
		p.line("  %3.0f %%: %s, %s%s", r.OfIdeal*100, plural.Of(r.CapacityBlocks, "block"), plural.Of(r.CapacityTokens, "token"), size)
	}
	p.line("")
}

func (c *TracePrefix) writeReuse(p *report) {
	r := c.Reuse
	if r.Blocks == 0 {
		return
	}
	p.table(statsHeader("reused blocks"), [][]string{
		statsRow("time since the last use, s", r.TimeS),
		statsRow("LRU stack distance, blocks", r.Distance),
	})
	p.line("")
	if s := r.Sessions; s != nil {
		p.line("Hits of the endless cache: %s of the tokens from within the session, %s across sessions.", percent(s.Within.Share), percent(s.Across.Share))
	}
	if z := c.Popularity.Zipf; z != nil {
		p.line("Popularity: Zipf exponent %s over %s by rank (maximum likelihood), Kolmogorov-Smirnov distance %s.",
			figure(Some(z.Exponent)), plural.Of(z.N, "block"), figure(Some(z.KS)))
	}
	p.line("")
}

func (c *TracePrefix) writePrefixes(p *report) {
	for _, l := range []struct {
		by   string
		list []SharedPrefix
	}{{"saved tokens", c.TopPrefixes.ByTokens}, {"requests", c.TopPrefixes.ByRequests}} {
		if len(l.list) == 0 {
			continue
		}
		p.line("Shared prefixes, by %s:", l.by)
		p.line("")
		var rows [][]string
		for i, x := range l.list {
			rows = append(rows, []string{
				strconv.Itoa(i + 1), strconv.FormatInt(x.Blocks, 10), strconv.FormatInt(x.Tokens, 10), strconv.FormatInt(x.Requests, 10),
				strconv.FormatInt(x.SavedTokens, 10), strconv.FormatInt(x.FirstRequest, 10),
			})
		}
		p.table([]string{"", "blocks", "tokens", "requests", "saved tokens", "first request"}, rows)
		p.line("")
	}
	if len(c.TopPrefixes.ByTokens) > 0 {
		p.line("Saved tokens are those beyond the next shorter shared prefix; requests are counted from 0.")
		p.line("")
	}
}

// binarySize writes bytes with the largest binary unit that they fill.
func binarySize(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	at := 0
	for bytes >= 1024 && at < len(units)-1 {
		bytes /= 1024
		at++
	}
	return fmt.Sprintf("%.4g %s", bytes, units[at])
}
