package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/uuid"
)

// told is a change of an entity by one event that moves it.
func told(e events.Entity, event events.Event) store.Change {
	return store.Change{Row: store.Row{Entity: e, Topic: "a", Version: 1}, Transitions: []events.Transition{{Event: event, Version: 1}}}
}

func TestCheckPrune(t *testing.T) {
	prune := func(through int64, list ...store.Change) store.Changes {
		return store.Changes{Rows: list, Prune: through}
	}
	log := told(events.LogEntity(), &events.LogPruned{Through: 7})
	checks{
		{"a prune that is told", prune(7, told(events.TopicEntity("a"), &events.TopicSnapshotted{}), log), "", false},
		{"a prune of which nothing tells", prune(7), "prune through 7: no log.pruned", false},
		{"a prune with other events alone", prune(7, told(events.TopicEntity("a"), &events.TopicSnapshotted{})), "prune through 7: no log.pruned", false},
		{"a prune that is told otherwise", prune(8, log), "prune through 8: no log.pruned", false},
		{"a prune that something else tells of", prune(7, told(events.TopicEntity("a"), &events.LogPruned{Through: 7})), "prune through 7", false},
		{"a prune of less than nothing", prune(-1, told(events.LogEntity(), &events.LogPruned{Through: -1})), "prune through -1", false},
		{"what is told and not done", prune(0, log), "", false},
	}.run(t)
}

func TestCheckErase(t *testing.T) {
	one, two := uuid.New(), uuid.New()
	erase := func(list []store.Change, ids ...events.ID) store.Changes {
		c := store.Changes{Rows: list}
		for _, id := range ids {
			c.Erase = append(c.Erase, store.Erasure{Message: id})
		}
		return c
	}
	of := func(id events.ID) store.Change { return told(events.MessageEntity(id), &events.MessageErased{}) }
	refilled := of(one)
	refilled.Result = &store.Payload{}
	both := []store.Change{of(one), of(two)}
	checks{
		{"erasures that are told", erase(both, two, one), "", false},
		{"erasures of which nothing tells", erase(nil, one), "erasure of 1 messages, and 0 of them", false},
		{"one of two of which nothing tells", erase(both[:1], one, two), "erasure of 2 messages, and 1 of them", false},
		{"an erasure with another event", erase([]store.Change{told(events.MessageEntity(one), &events.MessageRefused{})}, one), "and 0 of them", false},
		{"an erasure of something else", erase([]store.Change{told(events.WorkerEntity(one), &events.MessageErased{})}, one), "and 0 of them", false},
		{"one twice", erase(both, one, one), "message " + one.String() + ": it stands twice", false},
		{"one that is filled at once", erase([]store.Change{refilled}, one), "gives it contents", false},
		{"what is told and not done", erase(both), "", false},
	}.run(t)
}

func TestCheckContents(t *testing.T) {
	with := func(e events.Entity, payload, result *store.Payload) store.Changes {
		c := told(e, &events.MessageCompleted{})
		c.Payload, c.Result = payload, result
		return store.Changes{Rows: []store.Change{c}}
	}
	of := func(n int) *store.Payload { return &store.Payload{Bytes: make([]byte, n)} }
	message := events.MessageEntity(uuid.New())
	silent := with(message, nil, of(1))
	silent.Rows[0].From, silent.Rows[0].Transitions = 1, nil
	silent.Rows = append(silent.Rows, told(events.TopicEntity("a"), &events.TopicPaused{}))
	checks{
		{"both", with(message, of(1), of(1)), "", false},
		{"the largest result", with(message, nil, of(store.MaxResult)), "", false},
		{"a larger result", with(message, nil, of(store.MaxResult+1)), "65537 bytes, at most 65536", true},
		{"a result of what is no message", with(events.TopicEntity("a"), nil, of(1)), "result of topic/a: want a message", false},
		{"a payload of what is no message", with(events.TopicEntity("a"), of(1), nil), "payload of topic/a: want a message", false},
		{"a result of which nothing tells", silent, "no event tells of it", false},
	}.run(t)
}

func TestRunAllowsThePruneThatWasOffered(t *testing.T) {
	rows := []store.Row{{Entity: events.TopicEntity("a")}, {Entity: events.TopicEntity("b")}}
	all := []store.Change{
		told(rows[0].Entity, &events.TopicSnapshotted{}), told(rows[1].Entity, &events.TopicSnapshotted{}), told(events.LogEntity(), &events.LogPruned{Through: 7}),
	}
	ended := append([]store.Change{{Row: rows[0], Gone: true}}, all[1:]...)
	paused := append([]store.Change{told(rows[0].Entity, &events.TopicPaused{})}, all[1:]...)
	for _, test := range []struct {
		name    string
		asked   int // rows
		changes store.Changes
		want    string // in the error; empty: none
	}{
		{"what was offered", 3, store.Changes{Rows: all, Prune: 7}, ""},
		{"a row that goes itself", 3, store.Changes{Rows: ended, Prune: 7}, ""},
		{"nothing", 3, store.Changes{Rows: all}, ""},
		{"more than was offered", 3, store.Changes{Rows: all, Prune: 8}, "prune through 8: the store said that events through 7 may go"},
		{"less than was offered", 3, store.Changes{Rows: all, Prune: 6}, "prune through 6"},
		{"a full page", 2, store.Changes{Rows: all, Prune: 7}, "there may be others"},
		{"nobody asked for rows", 0, store.Changes{Rows: all, Prune: 7}, "there may be others"},
		{"a row without a snapshot", 3, store.Changes{Rows: all[1:], Prune: 7}, "topic/a has events there"},
		{"a row with another event", 3, store.Changes{Rows: paused, Prune: 7}, "topic/a has events there"},
	} {
		call := put("a")
		call.Need.Prune = store.Prunable{Events: 100, Rows: test.asked}
		call.Fn = func(store.View) (store.Changes, error) { return test.changes, nil }
		changes, err := call.Run(store.View{Pruning: store.Pruning{Through: 7, Rows: rows}})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || changes.Empty() != (err != nil) {
			t.Errorf("%s: changes %+v, error %v, want one with %q", test.name, changes, err, test.want)
		}
	}
}

func TestNoPrunerRefusesWhoAsks(t *testing.T) {
	for asked, refused := range map[store.Prunable]bool{{}: false, {Events: 1}: true, {Rows: 1}: true} {
		call := put("a")
		call.Need.Prune = asked
		if err := call.NoPruner(); errors.Is(err, store.ErrNoPruner) != refused || err != nil && !strings.Contains(err.Error(), call.ID.String()) {
			t.Errorf("%+v: error %v, want one: %t", asked, err, refused)
		}
	}
}

// pruning is a store that says where its log begins.
type pruning struct {
	store.Store
	first store.Cursor
	err   error
}

func (p pruning) First(context.Context) (store.Cursor, error) { return p.first, p.err }

func TestOldest(t *testing.T) {
	inner := memory.New(memory.Options{})
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		s    store.Store
		want store.Cursor
		err  error
	}{
		{"an engine that does not prune", struct{ store.Store }{inner}, "", nil},
		{"one that has not yet", inner, "", nil},
		{"one that has", pruning{inner, "here", nil}, "here", nil},
		{"one behind others", store.Batch(store.Batch(pruning{inner, "here", nil})), "here", nil},
		{"one that cannot say", pruning{inner, "", broken}, "", broken},
	} {
		if got, err := store.Oldest(t.Context(), test.s); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, error %v, want %q and %v", test.name, got, err, test.want, test.err)
		}
	}
}

func TestPrunedErrorNamesBoth(t *testing.T) {
	for asked, want := range map[store.Cursor]string{"": "the beginning", "there": `cursor "there"`} {
		err := error(&store.PrunedError{Asked: asked, First: "here"})
		if !errors.Is(err, store.ErrPruned) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `cursor "here"`) {
			t.Errorf("asked %q: %v", asked, err)
		}
	}
}

func TestCheckpointsAreChecked(t *testing.T) {
	of := func(name string, version, sequence, view int) store.Checkpoint {
		return store.Checkpoint{CheckpointKey: store.CheckpointKey{Name: name, Version: version, Sequence: sequence}, View: make([]byte, view)}
	}
	for _, test := range []struct {
		c     store.Checkpoint
		want  string // in the error; empty: none
		large bool
	}{
		{of("a", 1, 1, 0), "", false},
		{of(strings.Repeat("n", store.MaxName), 1<<40, 1<<40, 9), "", false},
		{of("", 1, 1, 0), "name is empty", false},
		{of("\xff", 1, 1, 0), "want UTF-8", false},
		{of(strings.Repeat("n", store.MaxName+1), 1, 1, 0), "201 bytes, at most 200", true},
		{of("a", 0, 1, 0), "version 0, sequence 1: want at least 1", false},
		{of("a", 1, 0, 0), "version 1, sequence 0: want at least 1", false},
		{of("a", 1, 1, store.MaxView+1), "67108865 bytes, at most 67108864", true},
	} {
		err := test.c.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || errors.Is(err, store.ErrTooLarge) != test.large {
			t.Errorf("%.20q version %d sequence %d: error %v, want one with %q", test.c.Name, test.c.Version, test.c.Sequence, err, test.want)
		}
	}
}
