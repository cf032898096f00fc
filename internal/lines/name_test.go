package lines

import (
	"encoding/hex"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var created = time.UnixMilli(0x0192_3456_789a)

// These ids are stored by every batch: a change here makes a resumed batch run
// all its records again.
func TestNameNeverChanges(t *testing.T) {
	tests := []struct {
		record     string
		occurrence int
		want       string
	}{
		{"a", 0, "01923456789a7db7b0804180f3cfc4ca"},
		{"a", 1, "01923456789a76c691d0b406f149aa67"},
		{"", 0, "01923456789a7516b65fba2635798ddf"},
	}
	for _, tt := range tests {
		id := Name(created, []byte(tt.record), tt.occurrence)
		if got := hex.EncodeToString(id[:]); got != tt.want {
			t.Errorf("%q %d: %s, want %s", tt.record, tt.occurrence, got, tt.want)
		}
	}
}

func TestNameLaws(t *testing.T) {
	bytesGen := rapid.SliceOfN(rapid.Byte(), 0, 40)
	rapid.Check(t, func(rt *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(rt, "ms"))
		record, other := bytesGen.Draw(rt, "record"), bytesGen.Draw(rt, "other")
		n, m := rapid.IntRange(0, 1<<40).Draw(rt, "n"), rapid.IntRange(0, 1<<40).Draw(rt, "m")

		id := Name(at, record, n)
		if id != Name(at.Add(999*time.Microsecond).UTC(), record, n) {
			rt.Error("not the same for the same arguments")
		}
		if id[6]>>4 != 7 || id[8]>>6 != 2 {
			rt.Errorf("%x: want version 7, variant 2", id)
		}
		if ms := time.UnixMilli(int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 | int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5])); !ms.Equal(at) {
			rt.Errorf("%x says %v, want %v", id, ms, at)
		}
		if same := string(record) == string(other) && n == m; same != (id == Name(at, other, m)) {
			rt.Errorf("(%d, %x) and (%d, %x): equal ids %v", n, record, m, other, !same)
		}
	})
}

// The same records in another order, cut into other batches, have the same names.
func TestNamesDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d\x00", "e\r"}), 0, 30).Draw(rt, "records")
		shuffled := rapid.Permutation(records).Draw(rt, "shuffled")
		first := namesOf(rt, records, 500)
		second := namesOf(rt, shuffled, rapid.IntRange(1, 7).Draw(rt, "batch"))
		if len(first) != len(records) {
			rt.Errorf("%d names for %d records", len(first), len(records))
		}
		for id := range first {
			if !second[id] {
				rt.Errorf("%x only in the first order", id)
			}
		}
	})
}

func namesOf(rt *rapid.T, records []string, batch int) map[[16]byte]bool {
	tally, err := NewTally()
	if err != nil {
		rt.Fatal(err)
	}
	defer tally.Close()
	names := make(map[[16]byte]bool)
	for len(records) > 0 {
		n := min(batch, len(records))
		var sums []Sum
		for _, record := range records[:n] {
			sums = append(sums, SumOf([]byte(record)))
		}
		before, err := tally.Add(sums)
		if err != nil {
			rt.Fatal(err)
		}
		for i, record := range records[:n] {
			names[Name(created, []byte(record), before[i])] = true
		}
		records = records[n:]
	}
	return names
}
