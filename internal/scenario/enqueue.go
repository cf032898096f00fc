package scenario

import (
	"context"
	"errors"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// batch is an enqueue that is being put together.
type batch struct {
	command  fsm.Enqueue
	payloads []store.Payload
}

func prepareEnqueue(_ context.Context, w *World, l *line, input string) (*step, error) {
	drafts, err := lines(input)
	if err != nil {
		return nil, err
	}
	b := batch{command: fsm.Enqueue{Topics: map[string]fsm.TopicStart{}}}
	if len(l.words) > 0 {
		err = b.add(w, l, l.word("topic"))
	}
	for _, d := range drafts {
		err = errors.Join(err, b.add(w, d, d.verb), d.end())
	}
	o, minted := w.origin()
	call, answers := calls.Enqueue(o, b.command, b.payloads)
	return &step{call: call, notes: func() ([]string, []*fsm.Refusal) {
		var known []string
		for _, a := range *answers {
			if a.Known {
				known = append(known, "known: "+w.names.word(a.ID))
			}
		}
		return known, nil
	}}, errors.Join(err, minted)
}

// add adds the drafts of a line.
func (b *batch) add(w *World, l *line, topic string) error {
	given, bytes := l.text("id"), []byte(l.text("payload"))
	onLocked, err := events.ParseLockPolicy(l.text("on-locked"))
	if err != nil {
		return err
	}
	payload := store.Payload{Bytes: bytes} // without a salt, so that the text stays the same when a step is put in before it
	m := fsm.EnqueueMessage{
		Topic: topic, DueAt: l.instant("due"), Delay: l.length("delay"), Priority: l.priority(),
		Key: l.text("key"), UniqueFor: l.length("unique-for"),
		Limits: events.Limits{
			MaxAttempts: l.number("max-attempts", 0),
			BackoffBase: l.length("backoff-base"), BackoffMax: l.length("backoff-max"), Timeout: l.length("timeout"),
			OrphanMaxAttempts: l.number("orphan-max-attempts", 0),
		},
		Payload: events.Facts{Size: len(bytes), Commitment: events.Commitment(payload.Salt, bytes)},
		Lock:    l.text("lock"), OnLocked: onLocked,
	}
	limit, unseen := l.number("limit", -1), l.flag("unseen")
	if _, named := b.command.Topics[topic]; !named && !unseen && (limit >= 0 || !w.topics[topic]) {
		b.command.Topics[topic] = fsm.TopicStart{Limit: max(limit, 0)}
	}
	for range l.number("n", 1) {
		draft := fsm.Draft{Given: given != "", EnqueueMessage: m}
		var err error
		if draft.Given {
			draft.ID, err = w.names.id(given)
		} else {
			draft.ID, err = w.mint()
		}
		if err != nil {
			return err
		}
		b.command.Drafts = append(b.command.Drafts, draft)
		b.payloads = append(b.payloads, payload)
	}
	return nil
}
