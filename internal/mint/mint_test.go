package mint

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
	"time"
)

func TestIDsRiseWhateverTheClockDoes(t *testing.T) {
	source := New(rand.Reader)
	at := time.UnixMilli(1_700_000_000_000)
	last := ""
	for i := range 20_000 {
		now := at.Add(time.Duration(i/9000) * time.Millisecond)
		if i%3 == 0 {
			now = now.Add(-time.Hour)
		}
		id, err := source.ID(now)
		if err != nil {
			t.Fatal(err)
		}
		if id.Version() != 7 || id.Variant().String() != "RFC4122" {
			t.Fatalf("id %s: version %d, variant %s", id, id.Version(), id.Variant())
		}
		if id.String() <= last {
			t.Fatalf("id %d: %s after %s", i, id, last)
		}
		last = id.String()
	}
}

func TestSameBytesSameIDs(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	a, errA := New(strings.NewReader(strings.Repeat("foundling!", 9))).ID(at)
	b, errB := New(strings.NewReader(strings.Repeat("foundling!", 9))).ID(at)
	if a != b || errA != nil || errB != nil {
		t.Fatalf("%s, %v and %s, %v", a, errA, b, errB)
	}
}

func TestJitterStaysInBounds(t *testing.T) {
	source := New(rand.Reader)
	low, high := 0, 0
	for range 20_000 {
		n, err := source.Jitter(100)
		if err != nil {
			t.Fatal(err)
		}
		low, high = min(low, n), max(high, n)
	}
	if low != -100 || high != 100 {
		t.Fatalf("from %d to %d, want -100 to 100", low, high)
	}
}

func TestAnEmptySourceIsAnError(t *testing.T) {
	source := New(bytes.NewReader(nil))
	if _, err := source.ID(time.Now()); err == nil {
		t.Error("an id out of nothing")
	}
	if _, err := source.Jitter(1); err == nil {
		t.Error("a choice out of nothing")
	}
}
