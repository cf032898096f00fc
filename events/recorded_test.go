package events_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/corpus"
	"github.com/google/go-cmp/cmp"
)

// stored is the last event of a sample as an engine keeps it.
func stored(s corpus.Sample) events.Stored {
	list := s.Transitions()
	kept := events.Encode(s.Entity, list[len(list)-1])
	kept.Position = 41
	return kept
}

// flips are all stored forms that differ from s in one bit of what its checksum speaks for, by the place of the bit.
func flips(s events.Stored) map[string]events.Stored {
	all := map[string]events.Stored{}
	flip := func(column string, bits int, change func(*events.Stored, int)) {
		for bit := range bits {
			other := s
			change(&other, bit)
			all[fmt.Sprintf("%s bit %d", column, bit)] = other
		}
	}
	flipByte := func(b []byte, bit int) []byte {
		b = slices.Clone(b)
		b[bit/8] ^= 1 << (bit % 8)
		return b
	}
	flip("kind", 8, func(s *events.Stored, bit int) { s.Entity.Kind ^= 1 << bit })
	flip("id", 128, func(s *events.Stored, bit int) { s.Entity.ID = events.ID(flipByte(s.Entity.ID[:], bit)) })
	flip("name", 8*len(s.Entity.Name), func(s *events.Stored, bit int) { s.Entity.Name = string(flipByte([]byte(s.Entity.Name), bit)) })
	flip("version", 64, func(s *events.Stored, bit int) { s.Version ^= 1 << bit })
	flip("type", 16, func(s *events.Stored, bit int) { s.Type ^= 1 << bit })
	flip("schema", 64, func(s *events.Stored, bit int) { s.Schema ^= 1 << bit })
	flip("from", 8, func(s *events.Stored, bit int) { s.From ^= 1 << bit })
	flip("to", 8, func(s *events.Stored, bit int) { s.To ^= 1 << bit })
	flip("body", 8*len(s.Body), func(s *events.Stored, bit int) { s.Body = flipByte(s.Body, bit) })
	flip("checksum", 32, func(s *events.Stored, bit int) { s.Checksum ^= 1 << bit })
	return all
}

// One flipped bit, in whatever column or byte, is an error that says where it stands.
func TestEveryFlippedBitIsFound(t *testing.T) {
	commit := corpus.Commit()
	for _, s := range corpus.Samples() {
		kept := stored(s)
		if _, err := kept.Decode(&commit); err != nil {
			t.Fatalf("%s as it was written: %v", s.Name, err)
		}
		for place, flipped := range flips(kept) {
			_, err := flipped.Decode(&commit)
			var corrupt *events.Corrupt
			if !errors.As(err, &corrupt) || corrupt.Position != 41 || corrupt.Version != flipped.Version {
				t.Errorf("%s: %s: error %v, want a *Corrupt with version and position", s.Name, place, err)
			}
		}
	}
}

// commitOf is a commit of the last events of some samples, as it is kept.
func commitOf(samples []corpus.Sample) (events.StoredCommit, []events.Stored) {
	var list []events.Stored
	for i, s := range samples {
		kept := stored(s)
		kept.Position = int64(i + 1)
		list = append(list, kept)
	}
	return events.Seal(corpus.Commit(), list), list
}

func TestDecodeCommit(t *testing.T) {
	samples := corpus.Samples()[:5]
	sealed, list := commitOf(samples)
	got, err := events.DecodeCommit(sealed, list)
	if err != nil {
		t.Fatal(err)
	}
	want := corpus.Commit()
	want.Count, want.Checksum = len(list), sealed.Checksum
	for i, r := range got {
		if diff := cmp.Diff(&want, r.Commit); diff != "" {
			t.Errorf("commit of event %d (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(samples[i].Event, r.Event); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i, diff)
		}
		if r.At() != want.At {
			t.Errorf("event %d: at %s, want %s", i, r.At(), want.At)
		}
	}
}

func TestDecodeCommitFindsWhatWasDone(t *testing.T) {
	samples := corpus.Samples()
	sealed, list := commitOf(samples[:5])
	_, more := commitOf(samples[5:6])
	swap := func(i, j int) []events.Stored {
		swapped := slices.Clone(list)
		swapped[i], swapped[j] = swapped[j], swapped[i]
		return swapped
	}
	tests := map[string][]events.Stored{
		"nothing left":                     nil,
		"an event added at the end":        slices.Concat(list, more),
		"an event added before all others": slices.Concat(more, list),
		"one added and one dropped":        slices.Concat(list[1:], more),
	}
	for i := range list {
		tests[fmt.Sprintf("event %d dropped", i)] = slices.Delete(slices.Clone(list), i, i+1)
		tests[fmt.Sprintf("event %d twice", i)] = slices.Insert(slices.Clone(list), i, list[i])
		for j := range i {
			tests[fmt.Sprintf("events %d and %d swapped", j, i)] = swap(j, i)
		}
	}
	for name, changed := range tests {
		_, err := events.DecodeCommit(sealed, changed)
		counts := fmt.Sprintf("holds %d events here, %d were written", len(changed), len(list))
		if !errors.As(err, new(*events.Corrupt)) || len(changed) != len(list) && !strings.Contains(err.Error(), counts) {
			t.Errorf("%s: error %v, want a *Corrupt that says what it %s", name, err, counts)
		}
		recounted := sealed
		recounted.Count = len(changed)
		if _, err := events.DecodeCommit(recounted, changed); !errors.As(err, new(*events.Corrupt)) {
			t.Errorf("%s, the count set right: error %v, want a *Corrupt", name, err)
		}
	}
}

func TestEveryFlippedBitOfACommitIsFound(t *testing.T) {
	sealed, list := commitOf(corpus.Samples()[:2])
	check := func(place string, changed events.StoredCommit) {
		t.Helper()
		_, err := events.DecodeCommit(changed, list)
		var corrupt *events.Corrupt
		if !errors.As(err, &corrupt) || corrupt.Position != 2 {
			t.Errorf("%s: error %v, want a *Corrupt at position 2", place, err)
		}
	}
	for bit := range 128 {
		changed := sealed
		changed.ID[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("id bit %d", bit), changed)
	}
	for bit := range 62 {
		changed := sealed
		changed.Count ^= 1 << bit
		check(fmt.Sprintf("count bit %d", bit), changed)
	}
	for bit := range 32 {
		changed := sealed
		changed.Checksum ^= 1 << bit
		check(fmt.Sprintf("checksum bit %d", bit), changed)
	}
	for bit := range 8 * len(sealed.Body) {
		changed := sealed
		changed.Body = slices.Clone(sealed.Body)
		changed.Body[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("body bit %d", bit), changed)
	}
	for us := range 50 {
		changed := sealed
		changed.At = sealed.At.Add(time.Microsecond << us)
		check(fmt.Sprintf("time moved by 2^%d µs", us), changed)
	}
}

// A commit's header alone, and no events at all, are answered too.
func TestHeader(t *testing.T) {
	sealed, _ := commitOf(corpus.Samples()[:3])
	commit, err := sealed.Header()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(corpus.Commit().Command, commit.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	sealed.Body = []byte(`{"nobody":1}`)
	if _, err := sealed.Header(); err == nil || !strings.Contains(err.Error(), sealed.ID.String()) {
		t.Errorf("error %v, want one that names the commit", err)
	}
}

// What a newer version wrote is kept byte for byte.
func TestUnknownIsKept(t *testing.T) {
	claimed := events.Encode(events.MessageEntity(events.ID{1}), events.Transition{
		Event: &events.MessageClaimed{Token: 2, Attempt: 1}, Version: 2, From: events.Queued, To: events.Running,
	})
	body := []byte(`{"new":{"deep":"}"},"x":1}`)
	tests := []struct {
		name   string
		change func(*events.Stored)
	}{
		{"a type of its own", func(s *events.Stored) { s.Type, s.Schema = 250, 1 }},
		{"a type beyond the index", func(s *events.Stored) { s.Type, s.Schema = 9999, 1 }},
		{"no type", func(s *events.Stored) { s.Type = 0 }},
		{"a later schema", func(s *events.Stored) { s.Schema++ }},
		{"no schema", func(s *events.Stored) { s.Schema = 0 }},
		{"a state of its own", func(s *events.Stored) { s.Type, s.To = 250, 99 }},
	}
	commit := corpus.Commit()
	for _, tt := range tests {
		s := claimed
		s.Body, s.Position = body, 7
		tt.change(&s)
		s.Checksum = events.Sum(s)
		r, err := s.Decode(&commit)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		want := events.Recorded{
			Transition: events.Transition{
				Event:   &events.Unknown{Code: s.Type, Schema: s.Schema, Body: body},
				Version: 2, From: s.From, To: s.To,
			},
			Position: 7, Entity: s.Entity, Commit: &commit,
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if line := new(events.Names).Line(r); !strings.Contains(line, string(body)) {
			t.Errorf("%s: line %q, want its body in it", tt.name, line)
		}
	}
}

// A known type in states that nobody knows, or with a body of another form, is an error though the checksum is right.
func TestDecodeRefusesWhatItCannotRead(t *testing.T) {
	commit := corpus.Commit()
	tests := []struct {
		name   string
		change func(*events.Stored)
		want   string
	}{
		{"from", func(s *events.Stored) { s.From = 99 }, "state(99)"},
		{"to", func(s *events.Stored) { s.To = 200 }, "state(200)"},
		{"body", func(s *events.Stored) { s.Body = []byte(`{"nobody":1}`) }, "nobody"},
		{"no body", func(s *events.Stored) { s.Body = nil }, "want an object"},
	}
	for _, tt := range tests {
		s := stored(corpus.Samples()[0])
		tt.change(&s)
		s.Checksum = events.Sum(s)
		_, err := s.Decode(&commit)
		if !errors.As(err, new(*events.Corrupt)) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "position 41") {
			t.Errorf("%s: error %v, want one about %q at position 41", tt.name, err, tt.want)
		}
	}
}

// A short payload cannot be guessed from its commitment without the salt.
func TestCommitmentNeedsItsSalt(t *testing.T) {
	one := events.Commitment([16]byte{1}, []byte("a"))
	if one == events.Commitment([16]byte{2}, []byte("a")) || one == events.Commitment([16]byte{1}, []byte("b")) {
		t.Error("another salt or payload has the same commitment")
	}
	if one != events.Commitment([16]byte{1}, []byte("a")) {
		t.Error("the same salt and payload have another commitment")
	}
}
