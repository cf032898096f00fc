package sqlite

import (
	"fmt"

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

// viewer makes the view of one call. The writers' turn keeps still what it holds.
type viewer struct {
	*overlay
	view  store.View
	seen  map[store.PermitKey]bool // permits that the view has
	waits []string                 // locks whose waiters it is to have
}

// see holds what a call needs. Heartbeats are written whoever has the turn, so they are read before the time is: one that were newer than
// the view's time would be taken for one from before the clock was set back.
func (o *overlay) see(need *store.Need) (store.View, error) {
	v := &viewer{overlay: o, view: store.View{
		Rows: make(map[events.Entity]store.Row, len(need.Held)+len(need.Known)), History: map[events.Entity][]events.Recorded{},
		Claimable: map[string][]store.Row{}, Claims: map[events.ID][]store.Row{}, Uncounted: map[string][]store.Row{},
		Keys: make(map[store.Key]store.KeyRow, len(need.Keys)), Waiting: map[string][]store.Row{},
		Fence:    events.Token(o.head + 1), // each permit is an event at least
		PrunedAt: o.pruned.at,
	}}
	for _, hold := range []func(*store.Need) error{v.holdBeats, v.holdNamed, v.holdPages, v.holdLocks, v.holdWaiters, v.holdPrunable} {
		if err := hold(need); err != nil {
			return v.view, err
		}
	}
	return v.view, nil
}

// holdBeats holds the heartbeats, and the time.
func (v *viewer) holdBeats(need *store.Need) error {
	var err error
	if workers := beaters(need); len(workers) > 0 {
		v.view.Beats, err = v.beats(workers)
	}
	v.view.Now = v.now()
	return err
}

// holdNamed holds what is named by id.
func (v *viewer) holdNamed(need *store.Need) error {
	for _, entity := range need.Held {
		if err := v.hold(entity); err != nil {
			return err
		}
	}
	for i := range need.Known {
		if err := v.hold(need.Known[i].Entity); err != nil {
			return err
		}
	}
	for _, key := range need.Keys {
		k := v.keys[key]
		if k.err != nil {
			return k.err
		}
		if k.Row != (store.KeyRow{}) {
			v.view.Keys[key] = k.Row
		}
	}
	return nil
}

// holdPages holds what is selected among rows.
func (v *viewer) holdPages(need *store.Need) error {
	var err error
	for _, page := range need.Claim {
		if err := v.holdTopic(page.Topic); err != nil {
			return err
		}
		if err := v.holdClaimable(page); err != nil {
			return err
		}
	}
	for _, page := range need.Uncounted {
		if err := v.holdTopic(page.Topic); err != nil {
			return err
		}
		v.view.Uncounted[page.Topic], err = v.selected(picking{query: uncountedQuery, n: page.N, args: []any{page.Topic}})
		if err != nil {
			return err
		}
	}
	for _, holder := range need.Claims {
		if err := v.holdEstate(holder); err != nil {
			return err
		}
	}
	return nil
}

func (v *viewer) hold(entity events.Entity) error {
	c, err := v.cell(entity)
	if err == nil && !c.kept {
		err = v.tell(c)
	}
	if err == nil {
		v.take(c)
	}
	return err
}

// take gives the view an entity that was looked up.
func (v *viewer) take(c *cell) {
	switch {
	case c.kept:
		v.view.Rows[c.entity] = c.row
	case len(c.history) > 0:
		v.view.History[c.entity] = c.history
	}
}

// holdTopic holds the row of a topic, if it has one.
func (v *viewer) holdTopic(topic string) error {
	c, err := v.cell(events.TopicEntity(topic))
	if err == nil && c.kept {
		v.view.Rows[c.entity] = c.row
	}
	return err
}

// holdClaimable holds the first n due messages of a topic, one range per priority, with their locks.
func (v *viewer) holdClaimable(page store.Page) error {
	var list []store.Row
	for _, priority := range events.Priorities() {
		left := page.N - len(list)
		if left <= 0 {
			break
		}
		more, err := v.selected(picking{
			query: claimableQueries[priority], n: left, args: []any{page.Topic, v.view.Now.UnixMicro()}, paid: true, pass: v.lockable,
		})
		if err != nil {
			return err
		}
		list = append(list, more...)
	}
	v.view.Claimable[page.Topic] = list
	for i := range list {
		v.holdLockOf(&list[i])
	}
	return nil
}

// maxPassedOver is how many damaged rows a page passes over to find one that is not.
const maxPassedOver = 1024

// more is how many rows to ask for beyond those that are wanted, after so many were not enough.
func more(over int) int { return max(4*over, 16) }

// picking is a query among messages whose last argument is how many rows it gives.
type picking struct {
	query string
	n     int // how many are wanted
	args  []any
	paid  bool                           // payloads come with the rows
	pass  func([]*cell) ([]*cell, error) // leaves out what cannot be used; nil passes all
}

// selected is the first n messages of a query. Rows that are not what was written are passed over, so that what stands behind them goes on;
// who reads them by themselves is told. The tables must show what the transaction has changed of messages so far.
func (o *overlay) selected(p picking) ([]store.Row, error) {
	if err := o.flushRows(); err != nil {
		return nil, err
	}
	columns := messageColumns
	if p.paid {
		columns += ", salt, bytes"
	}
	r := newRecord(columns)
	for over := 0; ; over = more(over) {
		list, all, err := o.pick(p, r, int64(p.n+over))
		if err != nil {
			return nil, err
		}
		if len(list) >= p.n || all || over >= maxPassedOver {
			return rowsOf(list[:min(len(list), p.n)]), nil
		}
	}
}

// pick runs a query for so many rows. all says that there are no more.
func (o *overlay) pick(p picking, r *record, limit int64) (list []*cell, all bool, err error) {
	found := int64(0)
	err = o.w.query(r, func() error {
		found++
		if c := o.found(tables[events.KindMessage], r); c.err == nil {
			c.paid(r)
			list = append(list, c)
		}
		return nil
	}, p.query, append(p.args[:len(p.args):len(p.args)], limit)...)
	if err == nil && p.pass != nil {
		list, err = p.pass(list)
	}
	return list, found < limit, err
}

func rowsOf(list []*cell) []store.Row {
	rows := make([]store.Row, len(list))
	for i, c := range list {
		rows[i] = c.row
	}
	return rows
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
