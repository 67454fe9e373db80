package record

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// Tokens of a block: 64 bytes at 4.2 bytes a token are 15.2 tokens, at 5 12.8.
func TestTokensPerBlock(t *testing.T) {
	for _, c := range []struct {
		header Header
		want   int
	}{
		{Header{}, 0},
		{Header{BlockSize: 512}, 512},
		{Header{BlockUnit: UnitBytes}, 0},
		{Header{BlockSize: 64, BlockUnit: UnitBytes, BytesPerToken: 4.2}, 15},
		{Header{BlockSize: 64, BlockUnit: UnitBytes, BytesPerToken: 5}, 13},
		{Header{BlockSize: 64, BlockUnit: UnitBytes}, 16}, // nothing measured: 4
		{Header{BlockSize: 4, BlockUnit: UnitBytes, BytesPerToken: 90}, 1},
		{Header{BlockSize: 64, BlockUnit: UnitBytes, BytesPerToken: 1e-300}, math.MaxInt32},
	} {
		if got := c.header.TokensPerBlock(); got != c.want {
			t.Errorf("%+v: found %d, want %d", c.header, got, c.want)
		}
	}
}

func TestHeaderOfBytes(t *testing.T) {
	want := Header{Kind: KindTrace, BlockSize: 64, BlockUnit: UnitBytes, BytesPerToken: 4.25, Capture: "blocks"}
	var file bytes.Buffer
	w, err := NewWriter(&file, want)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(file.Bytes())
	if h := got.header; err != nil || h.BlockSize != 64 || h.BlockUnit != UnitBytes || h.BytesPerToken != 4.25 || h.Capture != "blocks" {
		t.Errorf("found %+v, %v", h, err)
	}
	for _, c := range []struct {
		wire wireHeader
		want string
	}{
		{wireHeader{Kind: KindTrace, BlockUnit: "words"}, `block_unit is "words"`},
		{wireHeader{Kind: KindTrace, BytesPer: math.NaN()}, "bytes_per_token is NaN"},
		{wireHeader{Kind: KindTrace, BytesPer: math.Inf(1)}, "bytes_per_token is +Inf"},
		{wireHeader{Kind: KindTrace, BytesPer: -1}, "bytes_per_token is -1"},
	} {
		if _, err := c.wire.header(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, want %q", err, c.want)
		}
	}
}
