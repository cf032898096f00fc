package storetest

import (
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

func views() []sentence {
	return []sentence{
		{"Fn is given the rows that it named", viewRows},
		{"Fn is given the history of what has ended", viewHistory},
		{"Fn is given the store's time, which the commit carries", viewTime},
		{"a known row that still stands may be given as it is", viewKnown},
		{"a known row that has gone is not given, whatever else is decided with it", viewKnownGone},
		{"a key is held until it is let go", viewKeys},
		{"a key is taken by one message of its topic at a time", keyTaken},
		{"concurrent enqueues with one key make one message", keyTakenAtOnce},
	}
}

func viewRows(b *bed) {
	b.enqueue("mail", 2)
	all := b.kept(store.RowFilter{})
	for _, row := range all {
		view := b.seen(store.Need{Held: []events.Entity{row.Entity, events.MessageEntity(b.id()), events.TopicEntity("unknown")}})
		want(b, "rows", len(view.Rows), 1)
		want(b, "histories", len(view.History), 0)
		given := view.Rows[row.Entity]
		given.Payload = nil
		b.sameRows("given", []store.Row{given}, []store.Row{row})
	}
}

func viewHistory(b *bed) {
	b.enqueue("mail", 2)
	m := b.claim(b.id(), 1, "mail")[0]
	entity := events.MessageEntity(m.ID)
	b.commit(b.completing(m))
	b.commit(b.completing(m)) // a refusal stands in the history too
	view := b.seen(store.Need{Held: []events.Entity{entity, events.TopicEntity("mail")}})
	want(b, "rows", len(view.Rows), 1)
	want(b, "histories", len(view.History), 1)
	history := b.log(store.Filter{Entity: entity})
	want(b, "events", fmt.Sprint(types(history)), "[message.enqueued message.claimed message.completed message.refused]")
	b.same("history", view.History[entity], history)
	b.folds(view.History[entity])
}

func viewTime(b *bed) {
	var given time.Time
	receipt := b.commit(b.made(store.Need{}, func(v store.View) (store.Changes, error) {
		given = v.Now
		return store.Changes{Rows: []store.Change{configured("a", 0)}}, nil
	}))
	at := receipt.Events[0].At()
	want(b, "time of the commit", at.Equal(given), true)
	want(b, "time in microseconds", at, at.Truncate(time.Microsecond))
	want(b, "location", at.Location(), time.UTC)
}

func viewKnown(b *bed) {
	b.enqueue("mail", 1)
	claim := b.commit(b.claiming(b.id(), 1, "mail"))
	known := claim.Rows[0]
	given := b.seen(store.Need{Known: claim.Rows}).Rows[known.Entity]
	given.Payload, known.Payload = nil, nil
	b.sameRows("given", []store.Row{given}, []store.Row{known})
	settle, _ := calls.Settle(b.origin(), fsm.Settle{Items: []fsm.Settlement{
		{ID: known.Entity.ID, Command: fsm.CompleteMessage{Token: b.messages(claim.Rows)[0].Token}},
	}}, claim.Rows)
	want(b, "settlement", fmt.Sprint(types(b.commit(settle).Events)), "[message.completed]")
}

func viewKnownGone(b *bed) {
	b.enqueue("mail", 1)
	claim := b.commit(b.claiming(b.id(), 1, "mail"))
	b.commit(b.completing(b.messages(claimedOf(claim))...))
	entity := claimedOf(claim)[0].Entity
	var view store.View
	b.decide(b.made(store.Need{Known: claimedOf(claim)}, func(v store.View) (store.Changes, error) {
		view = v
		return store.Changes{}, nil
	}), b.claiming(b.id(), 1, "mail"))
	want(b, "rows", len(view.Rows), 0)
	want(b, "events of its history", len(view.History[entity]), 3)
}

func viewKeys(b *bed) {
	mine, same, none := store.Key{Topic: "a", Name: "né"}, store.Key{Topic: "b", Name: "né"}, store.Key{Topic: "a", Name: "other"}
	row := store.KeyRow{Message: b.id(), Open: true, UntilAt: time.UnixMicro(1_780_000_000_123_456).UTC()}
	closed := store.KeyRow{Message: b.id()}
	from := 0
	set := func(list ...store.KeyChange) {
		b.t.Helper()
		b.commit(b.made(store.Need{}, func(store.View) (store.Changes, error) {
			return store.Changes{Rows: []store.Change{configured("a", from)}, Keys: list}, nil
		}))
		from++
	}
	held := func(wanted map[store.Key]store.KeyRow) {
		b.t.Helper()
		keys := b.seen(store.Need{Keys: []store.Key{mine, same, none}}).Keys
		want(b, "keys", fmt.Sprint(keys), fmt.Sprint(wanted))
	}
	held(map[store.Key]store.KeyRow{})
	set(store.KeyChange{Key: mine, Row: row}, store.KeyChange{Key: same, Row: closed})
	held(map[store.Key]store.KeyRow{mine: row, same: closed})
	row.Open = false
	set(store.KeyChange{Key: mine, Row: row}, store.KeyChange{Key: same})
	held(map[store.Key]store.KeyRow{mine: row})
	set(store.KeyChange{Key: mine}, store.KeyChange{Key: none})
	held(map[store.Key]store.KeyRow{})
}

// keyed is the call that enqueues one message under a key.
func (b *bed) keyed(key string, uniqueFor time.Duration) store.Call {
	d := b.draft("mail")
	d.Key, d.UniqueFor = key, uniqueFor
	return b.enqueueing(d)
}

func keyTaken(b *bed) {
	b.commit(b.keyed("k", 0))
	want(b, "events of a second enqueue", len(b.commit(b.keyed("k", 0)).Events), 0)
	want(b, "events of another key", len(b.commit(b.keyed("l", time.Hour)).Events), 1)
	b.commit(b.completing(b.claim(b.id(), 5, "mail")...))
	want(b, "events after the message ended", len(b.commit(b.keyed("k", 0)).Events), 1)
	want(b, "events while the key is kept", len(b.commit(b.keyed("l", 0)).Events), 0)
}

func keyTakenAtOnce(b *bed) {
	const callers = 8
	list := make([]store.Call, callers)
	for i := range list {
		list[i] = b.keyed("k", 0)
	}
	b.ok(together(callers, func(i int) error {
		_, err := b.s.Decide(b.ctx, list[i])
		return err
	}))
	want(b, "messages", len(b.kept(store.RowFilter{Kind: events.KindMessage})), 1)
}
