package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"pgregory.net/rapid"
)

func TestVerifyIsCleanOnABusyStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		if err := h.Busy(rapid.IntRange(0, 80).Draw(t, "steps")); err != nil {
			t.Fatal(err)
		}
		report, err := replay.Verify(context.Background(), h.Store, replay.Options{Payloads: true})
		if err != nil {
			t.Fatal(err)
		}
		if !report.Clean() || len(report.Unchecked) > 0 {
			t.Fatalf("unchecked %q, violations:\n%s", report.Unchecked, texts(report))
		}
	})
}

func TestReportCountsWhatWasChecked(t *testing.T) {
	h := busy(t, 1, 1500)
	told := 0
	report := verify(t, h.Store, replay.Options{Payloads: true, Progress: func(n int) { told = n }})
	log, rows := logOf(t, h.Store), rowsOf(t, h.Store)
	entities, commits := map[events.Entity]bool{}, map[events.ID]bool{}
	for _, r := range log {
		entities[r.Entity], commits[r.Commit.ID] = true, true
	}
	head, err := h.Store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	permits, err := collect(h.Store.Permits(t.Context(), store.PermitFilter{}))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{report.Events, report.Entities, report.Commits, report.Rows, report.Permits, report.Head, len(report.Violations), report.Unchecked}
	want := []any{len(log), len(entities), len(commits), len(rows), len(permits), head, 0, []string(nil)}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("report %v, want %v", got, want)
	}
	if told == 0 || told > len(log) {
		t.Errorf("progress told of %d events of %d", told, len(log))
	}
}

// Every event that is lost is found, each in turn: by its entity, its commit or its row. Only a refusal
// or a sweep that was alone leaves no trace.
func TestVerifyFindsEveryLostEvent(t *testing.T) {
	h := busy(t, 2, 110)
	for i, lost := range logOf(t, h.Store) {
		report := verify(t, damaged{Store: h.Store, log: without(i)}, replay.Options{})
		if report.Clean() != alone(lost) {
			t.Errorf("without %s: violations %q", (*events.Names)(nil).Line(lost), texts(report))
		}
	}
}

// Two neighbours that have changed places are found by their positions.
func TestVerifyFindsEverySwap(t *testing.T) {
	h := busy(t, 3, 120)
	log := logOf(t, h.Store)
	for i := range log[1:] {
		swapped := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
			list[i], list[i+1] = list[i+1], list[i]
			return list
		}}
		found(t, verify(t, swapped, replay.Options{}), replay.Violation{
			Entity: log[i].Entity, Version: log[i].Version, Position: log[i].Position, Detail: "position does not rise",
		})
	}
}

// An event that is there twice, or one more time with a new position, is found.
func TestVerifyFindsEveryRepeat(t *testing.T) {
	h := busy(t, 4, 120)
	log := logOf(t, h.Store)
	for i := range log {
		repeated := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
			again := list[i]
			again.Position = int64(len(list)) + 1
			return append(list, again)
		}}
		if report := verify(t, repeated, replay.Options{}); report.Clean() && !alone(log[i]) {
			t.Errorf("repeated %s: nothing found", (*events.Names)(nil).Line(log[i]))
		}
	}
}

// A whole life that comes a second time is found: terminal is final.
func TestVerifyFindsASecondLife(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	id := complete(t, h)
	log := logOf(t, h.Store)
	first := slices.IndexFunc(log, func(r events.Recorded) bool { return r.Entity.ID == id })
	twice := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
		for _, r := range list[first:len(log)] {
			r.Position = int64(len(list)) + 1
			list = append(list, r)
		}
		return list
	}}
	found(t, verify(t, twice, replay.Options{}), replay.Violation{
		Entity: events.MessageEntity(id), Version: 1, Position: int64(len(log)) + 1, Detail: "begins again after it has ended",
	})
}

// A key that two open messages have is found, and one that is taken again after its message has ended is well.
func TestVerifyFindsAKeyThatIsTakenTwice(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	for _, key := range []string{"one", "two"} {
		if _, err := h.Enqueue("mail", 1, fsm.EnqueueMessage{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if report := verify(t, h.Store, replay.Options{}); !report.Clean() {
		t.Fatalf("violations:\n%s", texts(report))
	}
	var second events.Recorded
	report := verify(t, damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
		for i, r := range list {
			if e, ok := r.Event.(*events.MessageEnqueued); ok && e.Key == "two" {
				taken := *e
				taken.Key = "one"
				list[i].Event, second = &taken, r
			}
		}
		return list
	}}, replay.Options{})
	found(t, report, replay.Violation{
		Entity: second.Entity, Version: 1, Position: second.Position, Detail: `it takes key "one" of topic "mail"`,
	})
}

// complete brings a message of a topic of its own to its end.
func complete(t *testing.T, h *history.History) events.ID {
	t.Helper()
	ids, err := h.Enqueue("own", 1, fsm.EnqueueMessage{})
	if err != nil {
		t.Fatal(err)
	}
	worker := events.ID{15: 9}
	rows, err := h.Claim(worker, "own", 1)
	if err != nil || len(rows) != 1 {
		t.Fatalf("claim gives %d rows and %v", len(rows), err)
	}
	if err := h.Settle(worker, fsm.Settlement{ID: ids[0], Command: fsm.CompleteMessage{Token: 2}}); err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// Each fact that an event records is compared with what the rules lead to.
func TestVerifyFindsAlteredEvents(t *testing.T) {
	h := busy(t, 5, 600)
	log := logOf(t, h.Store)
	for name, alter := range map[string]func(*events.Recorded) bool{
		"version": func(r *events.Recorded) bool { r.Version++; return true },
		"from":    func(r *events.Recorded) bool { r.From = events.Stopped; return true },
		"to":      func(r *events.Recorded) bool { r.To = events.Stopped; return true },
		"unknown type": func(r *events.Recorded) bool {
			r.Event = &events.Unknown{Code: 200, Schema: 1}
			return true
		},
		"type of another kind": func(r *events.Recorded) bool {
			r.Event = &events.TopicCounted{}
			return r.Entity.Kind != events.KindTopic
		},
		"commit count": func(r *events.Recorded) bool {
			commit := *r.Commit
			commit.Count++
			r.Commit = &commit
			return commit.Count == 2
		},
		"token":   claimed(func(e *events.MessageClaimed) bool { e.Token++; return true }),
		"attempt": claimed(func(e *events.MessageClaimed) bool { e.Attempt++; return true }),
		"topic":   claimed(func(e *events.MessageClaimed) bool { e.Topic += "s"; return true }),
		"limit":   claimed(func(e *events.MessageClaimed) bool { e.Limit++; return true }),
		"running": claimed(func(e *events.MessageClaimed) bool { e.Running++; return e.Limit > 0 }),
		"token of a completed claim": func(r *events.Recorded) bool {
			_, ok := r.Event.(*events.MessageCompleted)
			r.Event = &events.MessageCompleted{Token: 77}
			return ok
		},
		"claimer of an orphan": func(r *events.Recorded) bool {
			e, ok := r.Event.(*events.MessageOrphaned)
			if ok {
				orphaned := *e
				orphaned.Evidence.Claimer = events.ID{1}
				r.Event = &orphaned
			}
			return ok
		},
		"state that a refusal met": func(r *events.Recorded) bool {
			if _, ok := r.Event.(*events.MessageRefused); !ok {
				return false
			}
			r.From, r.To = events.Orphaned, events.Orphaned
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for i := range log {
				bad := log[i]
				if !alter(&bad) {
					continue
				}
				tried++
				altered := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
					list[i] = bad
					return list
				}}
				report := verify(t, altered, replay.Options{})
				found(t, report, replay.Violation{Entity: bad.Entity, Version: bad.Version, Position: bad.Position})
				if len(report.Violations) != 1 {
					t.Errorf("one fault is told %d times:\n%s", len(report.Violations), texts(report))
				}
				if tried == 8 {
					break
				}
			}
			if tried == 0 {
				t.Error("the history has no event to alter so")
			}
		})
	}
}

func claimed(alter func(*events.MessageClaimed) bool) func(*events.Recorded) bool {
	return func(r *events.Recorded) bool {
		e, ok := r.Event.(*events.MessageClaimed)
		if !ok {
			return false
		}
		changed := *e
		ok = alter(&changed)
		r.Event = &changed
		return ok
	}
}

// Each column of each kind of row is compared with what the log leads to.
func TestVerifyFindsAlteredRows(t *testing.T) {
	h := busy(t, 6, 80)
	rows := rowsOf(t, h.Store)
	for name, test := range map[string]struct {
		alter  func(*store.Row)
		kind   events.Kind // alone, unless none
		detail string
	}{
		"ahead":    {func(r *store.Row) { r.Version++ }, 0, "ahead of the log"},
		"behind":   {func(r *store.Row) { r.Version-- }, 0, "version 1 at position"},
		"state":    {func(r *store.Row) { r.State = events.Orphaned }, 0, "state: "},
		"topic":    {func(r *store.Row) { r.Topic += "x" }, 0, "topic: "},
		"priority": {func(r *store.Row) { r.Priority = 5 }, 0, "priority: "},
		"due":      {func(r *store.Row) { r.DueAt = r.DueAt.Add(time.Microsecond) }, 0, "due: "},
		"worker":   {func(r *store.Row) { r.Worker[0]++ }, 0, "worker: "},
		"claimed":  {func(r *store.Row) { r.ClaimedAt = r.ClaimedAt.Add(time.Microsecond) }, 0, "claimed: "},
		"counted":  {func(r *store.Row) { r.Counted = !r.Counted }, 0, "counted: "},
		"fields":   {func(r *store.Row) { r.Fields = append(slices.Clone(r.Fields), ' ') }, 0, "fields: "},
		"running":  {func(r *store.Row) { r.Running++ }, events.KindTopic, "running: "},
		"payload": {func(r *store.Row) {
			r.Payload = &store.Payload{Salt: r.Payload.Salt, Bytes: slices.Repeat([]byte{'x'}, len(r.Payload.Bytes))}
		}, events.KindMessage, "not what was enqueued"},
		"shorter payload": {func(r *store.Row) { r.Payload = &store.Payload{} }, events.KindMessage, "0 bytes are stored"},
		"no payload":      {func(r *store.Row) { r.Payload = nil }, events.KindMessage, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for i := range rows {
				if test.kind != 0 && test.kind != rows[i].Entity.Kind || name == "behind" && rows[i].Version != 1 {
					continue
				}
				tried++
				entity := rows[i].Entity
				var version int
				altered := damaged{Store: h.Store, rows: func(list []store.Row) []store.Row {
					for j := range list {
						if list[j].Entity == entity {
							test.alter(&list[j])
							version = list[j].Version
						}
					}
					return list
				}}
				report := verify(t, altered, replay.Options{Payloads: true})
				found(t, report, replay.Violation{Entity: entity, Version: version, Detail: test.detail})
				if len(report.Violations) != 1 {
					t.Errorf("one fault is told %d times:\n%s", len(report.Violations), texts(report))
				}
			}
			if tried == 0 {
				t.Error("the history has no row to alter so")
			}
		})
	}
}

func TestVerifyFindsMissingAndExtraRows(t *testing.T) {
	h := busy(t, 7, 200)
	ended := complete(t, h)
	for i, row := range rowsOf(t, h.Store) {
		missing := damaged{Store: h.Store, rows: func(list []store.Row) []store.Row {
			return slices.DeleteFunc(list, func(r store.Row) bool { return r.Entity == row.Entity })
		}}
		report := verify(t, missing, replay.Options{})
		found(t, report, replay.Violation{Entity: row.Entity, Version: row.Version, Detail: "has no row"})
		if i == 0 {
			twice := damaged{Store: h.Store, rows: func(list []store.Row) []store.Row { return append(list, row) }}
			found(t, verify(t, twice, replay.Options{}), replay.Violation{Entity: row.Entity, Version: row.Version, Detail: "two rows"})
		}
	}
	for _, test := range []struct {
		row    store.Row
		detail string
	}{
		{store.Row{Entity: events.MessageEntity(events.ID{1}), Version: 1}, "the log does not know"},
		{store.Row{Entity: events.MessageEntity(ended), Version: 3}, "a row is kept of what is completed"},
		{store.Row{Entity: events.MessageEntity(ended), Version: 2}, "behind the log"},
		{store.Row{Entity: events.Entity{Kind: 99, Name: "x"}, Version: 1}, "no lifecycle in this version"},
	} {
		extra := damaged{Store: h.Store, rows: func(list []store.Row) []store.Row { return append(list, test.row) }}
		found(t, verify(t, extra, replay.Options{}), replay.Violation{Entity: test.row.Entity, Version: test.row.Version, Detail: test.detail})
	}
}

// A claim beyond the limit is found even if it records the count truly.
func TestVerifyFindsAClaimBeyondTheLimit(t *testing.T) {
	h := history.New(func(int) int { return 0 })
	if err := h.Topic("mail", fsm.ConfigureTopic{Limit: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Enqueue("mail", 2, fsm.EnqueueMessage{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Claim(events.ID{15: 9}, "mail", 2); err != nil {
		t.Fatal(err)
	}
	lowered := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
		list[0].Event = &events.TopicConfigured{Limit: 1}
		for i := range list {
			if e, ok := list[i].Event.(*events.MessageClaimed); ok {
				claimed := *e
				claimed.Limit = 1
				list[i].Event = &claimed
			}
		}
		return list
	}}
	report := verify(t, lowered, replay.Options{})
	if !strings.Contains(texts(report), "claim number 2 of a topic whose limit is 1") {
		t.Errorf("not found:\n%s", texts(report))
	}
}

// A claim is not granted while its topic is paused, or counts older claims. The log is made to say that the topic was.
func TestVerifyFindsClaimsOfAClosedTopic(t *testing.T) {
	for detail, event := range map[string]events.Event{
		"its topic is paused":                 &events.TopicPaused{},
		"its topic still counts older claims": &events.TopicConfigured{Limit: 1, Counting: true},
	} {
		h := history.New(func(int) int { return 0 })
		complete(t, h)
		altered := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
			closing := list[0]
			closing.Event, closing.Version, closing.From, closing.To = event, 2, events.Active, events.Active
			if event.Type() == events.TypeTopicPaused {
				closing.To = events.Paused
			}
			return slices.Insert(list, 1, closing)
		}}
		if report := verify(t, altered, replay.Options{}); !strings.Contains(texts(report), detail) {
			t.Errorf("%s: not found:\n%s", detail, texts(report))
		}
	}
}
