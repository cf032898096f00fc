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
		if view.Uncounted[page.Topic], err = o.selected(messageColumns, uncountedQuery, page.N, page.Topic); err != nil {
			return err
		}
	}
	for _, holder := range need.Claims {
		view.Claims[holder.Worker], err = o.selected(messageColumns, claimsQuery, holder.N, holder.Worker[:])
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
	for _, priority := range events.Priorities() {
		left := page.N - len(list)
		if left <= 0 {
			break
		}
		more, err := o.selected(messageColumns+", salt, bytes", claimableQueries[priority], left, page.Topic, now.UnixMicro())
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// maxPassedOver is how many damaged rows a page passes over to find one that is not.
const maxPassedOver = 1024

// selected is the first n messages of a query whose last argument is how many rows it gives. Rows that are not what was written are
// passed over, so that what stands behind them goes on; who reads them by themselves is told. The tables must show what the transaction
// has changed of messages so far.
func (o *overlay) selected(columns, query string, n int, args ...any) ([]store.Row, error) {
	if err := o.flushRows(); err != nil {
		return nil, err
	}
	r := newRecord(columns)
	for over := 0; ; over = max(4*over, 16) {
		var list []store.Row
		found, limit := 0, n+over
		err := o.w.query(r, func() error {
			found++
			if c := o.found(tables[events.KindMessage], r); c.err == nil && len(list) < n {
				c.paid(r)
				list = append(list, c.row)
			}
			return nil
		}, query, append(args[:len(args):len(args)], int64(limit))...)
		if err != nil || len(list) == n || found < limit || over >= maxPassedOver {
			return list, err
		}
	}
}

// paid takes in the payload behind a message's columns, where one was asked for. One that cannot be read is one that is not there: the
// message can be ended, and its topic goes on.
func (c *cell) paid(r *record) {
	behind := width(messageColumns)
	if len(r.columns) <= behind || c.row.Payload != nil {
		return
	}
	if payload := r.payload(behind); r.err == nil {
		c.row.Payload = payload
	}
}
