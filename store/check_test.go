package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
)

// minted is a UUIDv7 of a time.
func minted(at time.Time) store.CommitID {
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}

func TestCheckID(t *testing.T) {
	now := time.UnixMilli(1_780_000_000_123).UTC()
	for _, test := range []struct {
		name string
		id   store.CommitID
		want string // in the error; empty: none
	}{
		{"now", minted(now), ""},
		{"at the horizon", minted(now.Add(-store.Horizon)), ""},
		{"behind the horizon", minted(now.Add(-store.Horizon - time.Millisecond)), "2026-05-27T20:26:40Z"},
		{"of a clock that runs ahead", minted(now.Add(time.Hour)), ""},
		{"zero", store.CommitID{}, "version 7"},
		{"random", uuid.New(), "version 7"},
	} {
		err := store.CheckID(test.id, now)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
		if errors.Is(err, store.ErrExpired) != (test.name == "behind the horizon") {
			t.Errorf("%s: error %v", test.name, err)
		}
	}
	if at := store.MintedAt(minted(now)); !at.Equal(now) {
		t.Errorf("minted at %s, want %s", at, now)
	}
}

// checks are changes and what Check says of them.
type checks []struct {
	name    string
	changes store.Changes
	want    string // in the error; empty: none
	large   bool
}

func (list checks) run(t *testing.T) {
	t.Helper()
	for _, test := range list {
		err := test.changes.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
		if errors.Is(err, store.ErrTooLarge) != test.large {
			t.Errorf("%s: error %v, too large: want %t", test.name, err, test.large)
		}
	}
}

// moved is a topic's change by events that have these versions.
func moved(from, to int, versions ...int) store.Change {
	c := store.Change{From: from, Row: store.Row{Entity: events.TopicEntity("a"), Version: to}}
	for _, v := range versions {
		c.Transitions = append(c.Transitions, events.Transition{Event: &events.TopicPaused{}, Version: v})
	}
	return c
}

func TestCheck(t *testing.T) {
	payload := func(n int) store.Change {
		c := moved(0, 1, 1)
		c.Row.Entity, c.Row.Topic = events.MessageEntity(uuid.New()), "a"
		c.Payload = &store.Payload{Bytes: make([]byte, n)}
		return c
	}
	named := func(n int) store.Change {
		c := moved(0, 1, 1)
		c.Row.Entity.Name = strings.Repeat("n", n)
		return c
	}
	inTopic := moved(0, 1, 1)
	inTopic.Row.Entity, inTopic.Row.Topic = events.MessageEntity(uuid.New()), strings.Repeat("n", store.MaxName+1)
	noTopic := moved(0, 1, 1)
	noTopic.Row.Entity = events.MessageEntity(uuid.New())
	called := func(name string) store.Change {
		c := moved(0, 1, 1)
		c.Row.Entity.Name = name
		return c
	}
	rows := func(list ...store.Change) store.Changes { return store.Changes{Rows: list} }
	key := func(topic, name int) store.Changes {
		return store.Changes{Rows: []store.Change{moved(0, 1, 1)}, Keys: []store.KeyChange{{Key: store.Key{Topic: strings.Repeat("t", topic), Name: strings.Repeat("k", name)}}}}
	}
	checks{
		{"nothing", store.Changes{}, "", false},
		{"a new entity", rows(moved(0, 1, 1)), "", false},
		{"several events", rows(moved(3, 5, 4, 5)), "", false},
		{"a refusal between", rows(moved(3, 5, 4, 0, 5)), "", false},
		{"a refusal alone", rows(moved(3, 3, 0)), "", false},
		{"a version left out", rows(moved(3, 5, 5)), "topic/a: version 5 follows 3", false},
		{"a version twice", rows(moved(3, 4, 4, 4)), "topic/a: version 4 follows 4", false},
		{"a row ahead of its events", rows(moved(3, 5, 4)), "lead to version 4, its row has 5", false},
		{"one bad among good ones", rows(called("b"), moved(3, 5, 4)), "its row has 5", false},
		{"one twice", rows(moved(0, 1, 1), moved(1, 2, 2)), "topic/a: it stands twice", false},
		{"a new one without an event", rows(called("b"), moved(0, 0)), "topic/a: it is new", false},
		{"an old one without an event", rows(called("b"), moved(3, 3)), "", false},
		{"rows without an event", rows(moved(3, 3)), "commit without an event", false},
		{"a count without an event", store.Changes{Counts: []store.Count{{Topic: "a", Delta: 1}}}, "commit without an event", false},
		{"a topic without a name", rows(called("")), "name is empty", false},
		{"a topic that is no text", rows(called("\xff")), "want UTF-8", false},
		{"a message of no topic", rows(noTopic), "name is empty", false},
		{"a key without a name", key(1, 0), "key: its name is empty", false},
		{"a key of no topic", key(0, 1), "topic: its name is empty", false},
		{"the largest payload", rows(payload(store.MaxPayload)), "", false},
		{"a larger payload", rows(payload(store.MaxPayload + 1)), "16777217 bytes, at most 16777216", true},
		{"the longest name", rows(named(store.MaxName)), "", false},
		{"a longer name", rows(named(store.MaxName + 1)), "201 bytes, at most 200", true},
		{"a longer name of a message's topic", rows(inTopic), "201 bytes, at most 200", true},
		{"the longest key", key(store.MaxName, store.MaxName), "", false},
		{"a longer key", key(1, store.MaxName+1), "201 bytes, at most 200", true},
		{"a longer topic of a key", key(store.MaxName+1, 1), "201 bytes, at most 200", true},
		{"the most events", rows(moved(0, 0, make([]int, store.MaxEvents)...)), "", false},
		{"more events, over several rows", rows(moved(0, 0, make([]int, store.MaxEvents)...), called("b")), "10001 events, at most 10000", true},
	}.run(t)
}

func TestCheckLocks(t *testing.T) {
	rows := func(list ...store.Change) store.Changes { return store.Changes{Rows: list} }
	of := func(e events.Entity, lock string) store.Changes {
		c := moved(0, 1, 1)
		c.Row.Entity, c.Row.Topic, c.Row.Lock = e, "a", lock
		return rows(c)
	}
	permits := func(list ...store.PermitChange) store.Changes {
		return store.Changes{Rows: []store.Change{moved(0, 1, 1)}, Permits: list}
	}
	out := func(lock string, token events.Token) store.PermitChange {
		return store.PermitChange{Permit: store.Permit{PermitKey: store.PermitKey{Lock: lock, Token: token}, Worker: uuid.New()}}
	}
	back := out("l", 1)
	back.Back = true
	noWorker := out("l", 1)
	noWorker.Permit.Worker = events.ID{}
	noWorkerBack := noWorker
	noWorkerBack.Back = true
	message, longest := events.MessageEntity(uuid.New()), strings.Repeat("l", store.MaxName)
	checks{
		{"a message without a lock", of(message, ""), "", false},
		{"a message with the longest name of a lock", of(message, longest), "", false},
		{"a message with a longer name of a lock", of(message, longest+"l"), "201 bytes, at most 200", true},
		{"a message whose lock is no text", of(message, "\xff"), "lock \"\\xff\": want UTF-8", false},
		{"a lock without a name", of(events.LockEntity(""), ""), "lock: its name is empty", false},
		{"a lock with the longest name", of(events.LockEntity(longest), ""), "", false},
		{"a lock with a longer name", of(events.LockEntity(longest+"l"), ""), "201 bytes, at most 200", true},
		{"a leadership without a name", of(events.LeaderEntity(""), ""), "leader: its name is empty", false},
		{"a clock that is no text", of(events.Entity{Kind: events.KindClock, Name: "\xff"}, ""), "clock \"\\xff\": want UTF-8", false},
		{"a sweep, which has no name", of(events.SweepEntity(uuid.New()), ""), "", false},
		{"permits of two locks", permits(out("l", 1), out("m", 1), out("l", 2)), "", false},
		{"a permit that is back", permits(back), "", false},
		{"a permit of no lock", permits(out("", 1)), "lock: its name is empty", false},
		{"a permit of a lock that is no text", permits(out("l", 1), out("\xff", 1)), "lock \"\\xff\": want UTF-8", false},
		{"a permit of the longest name", permits(out(longest, 1)), "", false},
		{"a permit of a longer name", permits(out(longest+"l", 1)), "201 bytes, at most 200", true},
		{"a permit without a token", permits(out("l", 0)), "permit of lock \"l\": it has token 0", false},
		{"a permit without a worker", permits(noWorker), "permit of lock \"l\": it has token 1 and worker 00000000-", false},
		{"a permit that is back, without a worker", permits(noWorkerBack), "permit of lock \"l\": it has token 1 and worker 00000000-", false},
		{"a permit given out twice", permits(out("m", 1), out("l", 1), out("l", 1)), "permit 1 of lock \"l\": it stands twice", false},
		{"a permit given out and taken back at once", permits(out("l", 1), back), "permit 1 of lock \"l\": it stands twice", false},
		{"a permit without an event", store.Changes{Permits: []store.PermitChange{out("l", 1)}}, "commit without an event", false},
	}.run(t)
}

func TestRunRefusesWhatPanics(t *testing.T) {
	call := put("a")
	if changes, err := call.Run(store.View{}); err != nil || len(changes.Rows) != 1 {
		t.Errorf("changes %+v, error %v", changes, err)
	}
	call.Fn = func(store.View) (store.Changes, error) { panic("out of its mind") }
	changes, err := call.Run(store.View{})
	if !changes.Empty() || err == nil {
		t.Fatalf("changes %+v, error %v", changes, err)
	}
	for _, want := range []string{"out of its mind", call.ID.String(), "check_test.go"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

func TestWakes(t *testing.T) {
	row := func(r store.Row) store.Changes { return store.Changes{Rows: []store.Change{{Row: r}}} }
	message := store.Row{Entity: events.MessageEntity(uuid.New())}
	queued := message
	queued.DueAt = time.UnixMicro(1)
	for _, test := range []struct {
		name    string
		changes store.Changes
		want    bool
	}{
		{"nothing", store.Changes{}, false},
		{"a message that ended", row(message), false},
		{"a message in its queue", row(queued), true},
		{"a worker", row(store.Row{Entity: events.WorkerEntity(uuid.New())}), false},
		{"a topic", row(store.Row{Entity: events.TopicEntity("a")}), true},
		{"a slot taken", store.Changes{Counts: []store.Count{{Topic: "a", Delta: 1}}}, false},
		{"a slot given back", store.Changes{Counts: []store.Count{{Topic: "a", Delta: 1}, {Topic: "b", Delta: -1}}}, true},
	} {
		if got := test.changes.Wakes(); got != test.want {
			t.Errorf("%s: wakes %t, want %t", test.name, got, test.want)
		}
	}
}

func TestWokenNamesEachTopicOnce(t *testing.T) {
	row := func(topic string) store.Change {
		return store.Change{Row: store.Row{Entity: events.MessageEntity(uuid.New()), Topic: topic, DueAt: time.UnixMicro(1)}}
	}
	changes := store.Changes{
		Rows:   []store.Change{row("a"), row("b"), row("a"), {Row: store.Row{Entity: events.TopicEntity("c")}}},
		Counts: []store.Count{{Topic: "d", Delta: -1}, {Topic: "b", Delta: -1}, {Topic: "e", Delta: 1}},
	}
	if got, want := changes.Woken([]string{"c"}), []string{"c", "a", "b", "d"}; !slices.Equal(got, want) {
		t.Errorf("woken %q, want %q", got, want)
	}
}

func TestCursor(t *testing.T) {
	mine, other := uuid.New(), uuid.New()
	for _, test := range []struct {
		cursor store.Cursor
		want   int64
		fault  string // in the error; empty: none
	}{
		{"", 0, ""},
		{store.CursorAt(mine, 0), 0, ""},
		{store.CursorAt(mine, 1<<63-1), 1<<63 - 1, ""},
		{store.CursorAt(other, 1), 0, other.String()},
		{store.CursorAt(mine, -1), 0, "has not the form"},
		{store.CursorAt(mine, 1) + "0000000000000000000", 0, "has not the form"},
		{"12", 0, "has not the form"},
		{"@", 0, "has not the form"},
		{"é\n@1", 0, `\n`},
	} {
		got, err := test.cursor.Position(mine)
		if err != nil && !errors.Is(err, store.ErrCursor) {
			t.Errorf("%q: error %v is not ErrCursor", test.cursor, err)
		}
		if got != test.want || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%q: position %d, error %v, want %d and %q", test.cursor, got, err, test.want, test.fault)
		}
	}
}

func TestCursorWithinALog(t *testing.T) {
	mine := uuid.New()
	for _, test := range []struct {
		cursor store.Cursor
		class  error
	}{
		{"", nil}, {store.CursorAt(mine, 7), nil}, {store.CursorAt(mine, 8), store.ErrAhead}, {store.CursorAt(uuid.New(), 3), store.ErrCursor},
	} {
		if _, err := test.cursor.Within(mine, 7); !errors.Is(err, test.class) {
			t.Errorf("%q: error %v, want %v", test.cursor, err, test.class)
		}
	}
}

func TestRecord(t *testing.T) {
	now := time.UnixMicro(1_780_000_000_123_456).UTC()
	call := put("a")
	changes := store.Changes{Rows: []store.Change{moved(0, 2, 1, 2), moved(2, 2, 0)}}
	r := store.Record(call, changes, now)
	r.Place(41)
	if r.Commit.ID != call.ID || r.Commit.Count != 3 || !r.Commit.At.Equal(now) {
		t.Errorf("commit: %+v", r.Commit)
	}
	decoded, err := events.DecodeCommit(r.Commit, r.Stored)
	if err != nil {
		t.Fatal(err)
	}
	names := new(events.Names)
	for i, e := range r.Events {
		if e.Position != int64(41+i) || names.Line(e) != names.Line(decoded[i]) || e.Commit.Checksum != r.Commit.Checksum {
			t.Errorf("event %d is %s, stored as %s", i, names.Line(e), names.Line(decoded[i]))
		}
	}
}
