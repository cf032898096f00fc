package events_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"pgregory.net/rapid"
)

func TestParseEntityReadsWhatStringWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := someEntities.Draw(rt, "entity")
		got, err := events.ParseEntity(e.String())
		if err != nil || got != e {
			rt.Errorf("%q: %v, %v", e, got, err)
		}
	})
}

var someEntities = rapid.Custom(func(t *rapid.T) events.Entity {
	e := events.Entity{Kind: rapid.SampledFrom(events.Kinds()).Draw(t, "kind")}
	if e.Kind.Named() {
		e.Name = someWords.Draw(t, "name")
	} else {
		copy(e.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	}
	return e
})

func TestParseEntityErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "want kind/id",
		"topic":             "want kind/id",
		"queue/a":           `unknown kind "queue"`,
		"kind(9)/a":         "unknown kind",
		"message/":          "message/",
		"message/not-an-id": "not-an-id",
	} {
		if e, err := events.ParseEntity(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, want one about %q", text, e, err, want)
		}
	}
}

// What the constructors make is of their kind, with a name or an id as that kind has.
func TestEntitiesOfEveryKind(t *testing.T) {
	id := events.ID{1}
	made := map[events.Kind]events.Entity{}
	for _, e := range []events.Entity{
		events.MessageEntity(id), events.TopicEntity("a"), events.WorkerEntity(id), events.LockEntity("a"), events.LeaderEntity("a"),
		events.SweepEntity(id), events.ClockEntity(), events.LogEntity(),
	} {
		if (e.Name != "") != e.Kind.Named() || (e.ID != events.ID{}) == e.Kind.Named() {
			t.Errorf("%s: name %q, id %s, named %t", e, e.Name, e.ID, e.Kind.Named())
		}
		if e.Kind.Rests() != (e.Kind == events.KindLock || e.Kind == events.KindLog) {
			t.Errorf("%s: rests %t", e, e.Kind.Rests())
		}
		made[e.Kind] = e
	}
	if len(made) != len(events.Kinds()) {
		t.Errorf("made are %v, the kinds are %v", made, events.Kinds())
	}
}

// The order is total, and equal are only the same.
func TestCompare(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b, c := someEntities.Draw(rt, "a"), someEntities.Draw(rt, "b"), someEntities.Draw(rt, "c")
		if (a.Compare(b) == 0) != (a == b) {
			rt.Errorf("%v and %v compare as %d", a, b, a.Compare(b))
		}
		if sign(a.Compare(b)) != -sign(b.Compare(a)) {
			rt.Errorf("%v and %v: %d one way, %d the other", a, b, a.Compare(b), b.Compare(a))
		}
		list := []events.Entity{a, b, c}
		slices.SortFunc(list, events.Entity.Compare)
		if list[0].Compare(list[2]) > 0 {
			rt.Errorf("%v is sorted before %v", list[0], list[2])
		}
	})
}

func sign(n int) int { return max(-1, min(1, n)) }
