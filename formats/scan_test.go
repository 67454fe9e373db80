package formats

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"retrace/record"
)

// scanSeeds are rows that the fast path takes, and rows next to them.
var scanSeeds = []string{
	`{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}`,
	`{"timestamp":27482,"input_length":5,"output_length":1,"hash_ids":[46]}`,
	`{"input_length":5,"timestamp":1}`,
	`{"timestamp":1,"input_length":0}`,
	`{"session_id": "s 1", "timestamp": 27482.125, "input_length": 5, "output_length": 1, "hash_ids": [46]}`,
	`{"session_id":"s1","delay":0.000001,"input_length":5}`,
	`{"timestamp":1,"delay":2,"input_length":5}`,
	`{"timestamp":01,"input_length":5}`,
	`{"timestamp":-1,"input_length":5}`,
	`{"timestamp":1.0,"input_length":5}`,
	`{"timestamp":1,"input_length":5,"input_length":5}`,
	`{"timestamp":1,"input_length":5,"hash_ids":[]}`,
	`{"timestamp":1,"input_length":5,"hash_ids":[1,]}`,
	`{"timestamp":1,"input_length":5,"hash_ids":[1}`,
	`{"timestamp":1,"input_length":5,}`,
	`{"timestamp":1,"input_length":5}}`,
	`{"timestamp":1,"input_length":99999999999999999999}`,
	`{"timestamp":999999999999999999,"input_length":5}`,
	`{"timestamp":1,"input_length":5,"hash_ids":[18446744073709551615]}`,
	`{"timestamp":1,"input_length":5,"x":1}`,
	`{"timestamp" :1,"input_length":5}`,
	`{"timestamp":1,"input_length":5,"hash_ids":[`,
	`{"timestamp":1.50,"input_length":5}`,
	`{"timestamp":1.,"input_length":5}`,
	`{"timestamp":.5,"input_length":5}`,
	`{"timestamp":1.5e1,"input_length":5}`,
	`{"timestamp":1.0000001,"input_length":5}`,
	`{"timestamp":9223372036854.775807,"input_length":5}`,
	`{"timestamp":9223372036855,"input_length":5}`,
	`{"timestamp":1,"session_id":"","input_length":5}`,
	`{"timestamp":1,"session_id":"a\"b","input_length":5}`,
	`{"timestamp":1,"session_id":"\u0061","input_length":5}`,
	`{"timestamp":1,"session_id":"é","input_length":5}`,
	`{"timestamp":1,"session_id":7,"input_length":5}`,
	`{"timestamp":1,"session_id":"a`,
	`{"timestamp":1,"input_length":5,"hash_ids":[8,9,10,11,13,98,99,100,1,23,9,:]}`,
	`{"timestamp":1,"input_length":5,"hash_ids":[8, 9, :, 11]}`,
	`{"timestamp":1,"input_length":5,"hash_ids":[123456, 123457 ,123458]}`,
	`{"timestamp":1,"input_length":5,"hash_ids":[1234567890123, 1234567890124, 1234567890125]`,
}

func decodeBoth(t testing.TB, line string) (fast, slow record.Request, fastOK bool, fastErr, slowErr error) {
	t.Helper()
	m := newMooncakeImporter(ImportConfig{BlockSize: 512, Unit: time.Millisecond})
	m.src = &Source{Name: "x", Line: 1, ledger: newLedger(Fail)}
	fast, slow = record.NewRequest(), record.NewRequest()
	fastOK = m.scan.scan([]byte(line), &m.row)
	if fastOK {
		fastErr = m.decode([]byte(line), &fast)
	}
	slowErr = m.decodeAny([]byte(line), &slow)
	return fast, slow, fastOK, fastErr, slowErr
}

// FuzzScan: what the fast path takes, the slow path reads the same, and keeps
// no exception for.
func FuzzScan(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		fast, slow, ok, fastErr, slowErr := decodeBoth(t, strings.TrimSpace(line))
		if !ok {
			return
		}
		if (fastErr == nil) != (slowErr == nil) {
			t.Fatalf("%s: fast path %v, slow path %v", line, fastErr, slowErr)
		}
		if fastErr != nil {
			if fastErr.Error() != slowErr.Error() {
				t.Fatalf("%s:\nfast path %v\nslow path %v", line, fastErr, slowErr)
			}
			return
		}
		if !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%s:\nfast %+v\nslow %+v", line, fast, slow)
		}
	})
}

// The rows of the published files have to be plain.
func TestScanTakes(t *testing.T) {
	for i, s := range scanSeeds {
		if _, _, ok, _, _ := decodeBoth(t, s); ok != (i < 7) {
			t.Errorf("%s: taken: %v", s, ok)
		}
	}
}

// Lists with less in them than there was room for never overlap.
func TestSlab(t *testing.T) {
	var s slab
	var lists [][]uint64
	for n := range 300 {
		list := s.open(2 * n)
		for k := range n {
			list = append(list, uint64(n*1000+k))
		}
		lists = append(lists, s.keep(list))
	}
	for n, list := range lists {
		if len(list) != n {
			t.Fatalf("list %d has %d ids", n, len(list))
		}
		for k, id := range list {
			if id != uint64(n*1000+k) {
				t.Fatalf("list %d: id %d is %d", n, k, id)
			}
		}
	}
}
