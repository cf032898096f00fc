package scenario

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// expectation looks up what is expected of the thing with the given name.
type expectation func(ctx context.Context, w *World, name string) (string, error)

// expectations are the lines of an expect step. Each is the word, a name, and the value:
//
//	running TOPIC N       open claims that count, as the topic's row has it
//	room TOPIC N          how many claims its limit leaves; "any" without a limit
//	queued TOPIC N        messages that wait, due or not
//	topic TOPIC STATE     active or paused
//	state M STATE         attempts M N, spent M N, releases M N, failures M N, orphanings M N
//	holder M WORKER       whose claim is open; "nobody"
//	due M TIME            of a queued message
//	refusals M N          recorded ones
//	worker W STATE
//	held L N              permits of a lock that are out
//	keeper L WORKER       who has them, in the order of their tokens, as in (ann,bob); "nobody"
//	blocked L N           messages that wait for a lock and were not told to try
//	trying L N            messages that were told to try
//	oldest TOPIC TIME     how old its oldest open claim is
//	swept WHAT N          what came of the last sweep: requeued, dead-lettered, locks-released, spared or dead; "refused" gives the guard, or
//	                      "no"; "sweeps" is how many the beat made so far
//	skipped REASON N      sweeps that were refused for it; of claim_grace what they spared; of "any" all that were refused
//	leader NAME WORKER    who leads by its lease, while that lasts; "nobody"
//	events TYPE N         in the whole log
var expectations = map[string]expectation{
	"running":    expectRunning,
	"room":       expectRoom,
	"queued":     expectQueued,
	"topic":      expectRow(events.TopicEntity),
	"state":      ofMessage(func(m *message) string { return m.state.String() }),
	"attempts":   ofMessage(func(m *message) string { return strconv.Itoa(m.claims) }),
	"spent":      ofMessage(func(m *message) string { return strconv.Itoa(m.claims - m.released() - m.spent[0]) }),
	"releases":   ofMessage(func(m *message) string { return strconv.Itoa(m.released()) }),
	"failures":   ofMessage(func(m *message) string { return strconv.Itoa(m.failed) }),
	"orphanings": ofMessage(func(m *message) string { return strconv.Itoa(m.orphans) }),
	"refusals":   ofMessage(func(m *message) string { return strconv.Itoa(m.refused) }),
	"holder":     expectHolder,
	"due":        expectDue,
	"worker":     expectWorker,
	"held":       expectHeld,
	"keeper":     expectKeeper,
	"blocked":    expectWaiting(store.Blocked),
	"trying":     expectWaiting(store.Trying),
	"oldest":     expectOldest,
	"swept":      expectSwept,
	"skipped":    expectSkipped,
	"leader":     expectLeader,
	"events":     expectEvents,
}

// lookExpect fails where one of its lines does not hold.
func lookExpect(ctx context.Context, w *World, l *line, input string) (string, error) {
	list, err := lines(input)
	if err != nil {
		return "", err
	}
	if len(l.words) > 0 {
		words := l.rest()
		list = append(list, &line{verb: words[0], words: words[1:]})
	}
	var errs []error
	for _, l := range list {
		look, ok := expectations[l.verb]
		if !ok {
			errs = append(errs, fmt.Errorf("expect %s: not known", l.verb))
			continue
		}
		name, want := l.word("name"), l.word("value")
		got, err := look(ctx, w, name)
		if err == nil && got != want {
			err = fmt.Errorf("it is %s", got)
		}
		if err = errors.Join(err, l.end()); err != nil {
			errs = append(errs, fmt.Errorf("expect %s %s %s: %w", l.verb, name, want, err))
		}
	}
	return "", errors.Join(errs...)
}

func ofMessage(read func(*message) string) expectation {
	return func(_ context.Context, w *World, name string) (string, error) {
		id, err := w.names.id(name)
		if err != nil {
			return "", err
		}
		m, ok := w.laws.messages[id]
		if !ok {
			return events.Absent.String(), nil
		}
		return read(m), nil
	}
}

// row is what the store keeps of an entity; a row without a version where it keeps none.
func (w *World) row(ctx context.Context, entity events.Entity) (store.Row, error) {
	for row, err := range w.engine.Rows(ctx, store.RowFilter{Entities: []events.Entity{entity}}) {
		return row, err
	}
	return store.Row{}, nil
}

func expectRow(entity func(string) events.Entity) expectation {
	return func(ctx context.Context, w *World, name string) (string, error) {
		row, err := w.row(ctx, entity(name))
		return row.State.String(), err
	}
}

func expectRunning(ctx context.Context, w *World, name string) (string, error) {
	row, err := w.row(ctx, events.TopicEntity(name))
	return strconv.Itoa(row.Running), err
}

func expectRoom(_ context.Context, w *World, name string) (string, error) {
	t := w.laws.topic(name)
	if t.limit == 0 {
		return "any", nil
	}
	return strconv.Itoa(t.limit - t.running), nil
}

func expectQueued(ctx context.Context, w *World, name string) (string, error) {
	n := 0
	for row, err := range w.engine.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: name}) {
		if err != nil {
			return "", err
		}
		if row.State == events.Queued {
			n++
		}
	}
	return strconv.Itoa(n), nil
}

func expectHolder(ctx context.Context, w *World, name string) (string, error) {
	id, err := w.names.id(name)
	if err != nil {
		return "", err
	}
	row, err := w.row(ctx, events.MessageEntity(id))
	if row.Worker == (events.ID{}) {
		return "nobody", err
	}
	return w.names.word(row.Worker), err
}

func expectDue(ctx context.Context, w *World, name string) (string, error) {
	id, err := w.names.id(name)
	if err != nil {
		return "", err
	}
	row, err := w.row(ctx, events.MessageEntity(id))
	return since(row.DueAt), err
}

func expectWorker(_ context.Context, w *World, name string) (string, error) {
	id, err := w.names.id(name)
	state := events.Absent
	for _, r := range w.log {
		if r.Entity == events.WorkerEntity(id) {
			state = r.To
		}
	}
	return state.String(), err
}

func expectEvents(_ context.Context, w *World, name string) (string, error) {
	typ, err := events.ParseType(name)
	n := 0
	for _, r := range w.log {
		if r.Event.Type() == typ {
			n++
		}
	}
	return strconv.Itoa(n), err
}
