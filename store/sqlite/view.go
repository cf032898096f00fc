package sqlite

import (
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// The queries that select among rows. Each walks one range of one index; a test explains them. That of uncounted claims walks all
// open claims: it is asked when a topic is given its first limit, and an index for it would cost every claim of topics without one.
var (
	claimableQueries = func() map[events.Priority]string {
		queries := map[events.Priority]string{}
		for _, p := range events.Priorities() {
			queries[p] = fmt.Sprintf("SELECT "+of("m", messageColumns)+", p.salt, p.bytes FROM messages m INDEXED BY messages_claimable"+
				" LEFT JOIN payloads p ON p.place = m.place"+
				" WHERE m.topic = ? AND m.priority = %d AND m.due <= ? ORDER BY m.due, m.place LIMIT ?", p)
		}
		return queries
	}()
	claimsQuery = "SELECT " + messageColumns + " FROM messages INDEXED BY messages_running" +
		" WHERE worker = ? ORDER BY claimed_at, id LIMIT ?"
	uncountedQuery = "SELECT " + messageColumns + " FROM messages INDEXED BY messages_running" +
		" WHERE worker IS NOT NULL AND topic = ? AND counted = 0 ORDER BY claimed_at, id LIMIT ?"
)

// view holds what a call needs. The writers' turn keeps it still.
func (o *overlay) view(need *store.Need, now time.Time) (store.View, error) {
	view := store.View{
		Now: now, Rows: make(map[events.Entity]store.Row, len(need.Held)+len(need.Known)),
		History: map[events.Entity][]events.Recorded{}, Claimable: map[string][]store.Row{}, Claims: map[events.ID][]store.Row{},
		Uncounted: map[string][]store.Row{}, Keys: make(map[store.Key]store.KeyRow, len(need.Keys)),
	}
	for _, entity := range need.Held {
		if err := o.hold(&view, entity); err != nil {
			return view, err
		}
	}
	for i := range need.Known {
		if err := o.hold(&view, need.Known[i].Entity); err != nil {
			return view, err
		}
	}
	for _, key := range need.Keys {
		k := o.keys[key]
		if k.err != nil {
			return view, k.err
		}
		if k.Row != (store.KeyRow{}) {
			view.Keys[key] = k.Row
		}
	}
	return view, o.selections(&view, need, now)
}

// selections holds what a call needs that is not named by id.
func (o *overlay) selections(view *store.View, need *store.Need, now time.Time) error {
	var err error
	for _, page := range need.Claim {
		if err := o.holdTopic(view, page.Topic); err != nil {
			return err
		}
		if view.Claimable[page.Topic], err = o.claimable(page, now); err != nil {
			return err
		}
	}
	for _, page := range need.Uncounted {
		if err := o.holdTopic(view, page.Topic); err != nil {
			return err
		}
		if view.Uncounted[page.Topic], err = o.selected(nil, messageColumns, uncountedQuery, page.Topic, int64(page.N)); err != nil {
			return err
		}
	}
	for _, holder := range need.Claims {
		view.Claims[holder.Worker], err = o.selected(nil, messageColumns, claimsQuery, holder.Worker[:], int64(holder.N))
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *overlay) hold(view *store.View, entity events.Entity) error {
	c, err := o.cell(entity)
	if err != nil {
		return err
	}
	if c.kept {
		view.Rows[entity] = c.row
		return nil
	}
	if err := o.tell(c); err != nil {
		return err
	}
	if len(c.history) > 0 {
		view.History[entity] = c.history
	}
	return nil
}

// holdTopic holds the row of a topic, if it has one.
func (o *overlay) holdTopic(view *store.View, topic string) error {
	c, err := o.cell(events.TopicEntity(topic))
	if err == nil && c.kept {
		view.Rows[c.entity] = c.row
	}
	return err
}

// claimable is the first n due messages of a topic, one range per priority.
func (o *overlay) claimable(page store.Page, now time.Time) ([]store.Row, error) {
	var list []store.Row
	var err error
	for _, priority := range events.Priorities() {
		left := int64(page.N - len(list))
		if left <= 0 {
			break
		}
		list, err = o.selected(list, messageColumns+", salt, bytes", claimableQueries[priority], page.Topic, now.UnixMicro(), left)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// selected appends the messages of a query to a list. The tables must show what the transaction has changed of messages so far.
func (o *overlay) selected(list []store.Row, columns, query string, args ...any) ([]store.Row, error) {
	if err := o.flushRows(); err != nil {
		return nil, err
	}
	r := newRecord(columns)
	behind := width(messageColumns)
	err := o.w.query(r, func() error {
		c := o.found(tables[events.KindMessage], r)
		if c.err != nil {
			return c.err
		}
		if len(r.columns) > behind && c.row.Payload == nil {
			// A payload that cannot be read is one that is not there: the message can be ended, and its topic goes on.
			if payload := r.payload(behind); r.err == nil {
				c.row.Payload = payload
			}
		}
		list = append(list, c.row)
		return nil
	}, query, args...)
	return list, err
}
