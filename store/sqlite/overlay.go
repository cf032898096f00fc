package sqlite

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// overlay is what one transaction knows and has changed: rows, keys and ids by name, and the log's new end. Calls read and write it;
// the tables see what changed in few large statements, at the end and before a query that selects among rows.
type overlay struct {
	outside
	w     *writer
	trust trust
	head  int64

	pruned  pruned
	offered stretch   // what the call that is being decided may prune
	dropped time.Time // ids up to then were dropped

	cells   map[events.Entity]*cell
	keys    map[store.Key]*keyCell
	permits map[store.PermitKey]*permitCell
	ids     map[store.CommitID]int64 // of the calls; 0 was given up

	dirty        []*cell
	waitingMoved bool // some of them wait for a lock, or did
	dirtyKeys    []*keyCell
	dirtyPermits []*permitCell
	payloads     []*cell
	results      []result
	snapshots    []snapshot
	log          []*store.Recording
	woken        []string
	ended        []events.ID // workers that have no row any more
	shrinks      bool        // something was pruned
}

// outside is what a transaction asks that the writers' turn does not keep still, and whose it is.
type outside struct {
	store events.ID
	now   func() time.Time
	beats func(workers []events.ID) (map[events.ID]store.Beat, error) // the heartbeats of those who have one
}

// cell is an entity as the transaction has it.
type cell struct {
	entity events.Entity
	row    store.Row // where it is kept; with its payload where that was read or given
	place  int64     // of a message: the position of its first event
	kept   bool      // the entity has a row now
	stored bool      // its table has a row
	dirty  bool
	known  bool // it was looked up, so that no row means no row

	history []events.Recorded // of what has no row
	told    bool              // history was read, and nothing came after
	err     error             // its row or its history is not what was written
}

type keyCell struct {
	store.KeyChange
	dirty bool
	err   error // it is not what was written
}

func newOverlay(w *writer, t trust, out outside) (*overlay, error) {
	o := &overlay{
		outside: out, w: w, trust: t, cells: map[events.Entity]*cell{}, keys: map[store.Key]*keyCell{},
		permits: map[store.PermitKey]*permitCell{}, ids: map[store.CommitID]int64{},
	}
	l, err := logOf(w.query)
	if err != nil {
		return o, err
	}
	o.head, o.pruned = l.end, l.pruned
	o.dropped, err = w.dropped()
	return o, err
}

// decide runs one call. The error is the store's; a refused call is a receipt.
func (o *overlay) decide(call *store.Call) (store.Receipt, error) {
	if first, used := o.ids[call.ID]; used {
		return o.repeat(call.ID, first)
	}
	refused := store.Receipt{ID: call.ID}
	if refused.Err = checkID(call.ID, o.now(), o.dropped); refused.Err != nil {
		return refused, nil
	}
	changes, now, err := o.run(call)
	if refusal, ok := ofCall(err); ok {
		refused.Err = refusal
		return refused, nil
	}
	if err != nil || changes.Empty() {
		return refused, err
	}
	return o.keep(call, now, changes)
}

// run gives the changes of a call that may be kept, and the time at which it was decided.
func (o *overlay) run(call *store.Call) (store.Changes, time.Time, error) {
	view, err := o.see(&call.Need)
	if err != nil {
		return store.Changes{}, view.Now, err
	}
	changes, err := call.Run(view)
	if err == nil {
		err = changes.Check()
	}
	if err != nil {
		return store.Changes{}, view.Now, atFault{err}
	}
	return changes, view.Now, o.check(changes)
}

// repeat is the receipt of an id that was used before.
func (o *overlay) repeat(id store.CommitID, first int64) (store.Receipt, error) {
	if first == 0 {
		return store.Receipt{ID: id, Err: fmt.Errorf("commit %s: %w", id, store.ErrVoid)}, nil
	}
	if first <= o.pruned.through {
		return prunedReceipt(id), nil
	}
	if err := o.flushLog(); err != nil {
		return store.Receipt{ID: id}, err
	}
	receipt, err := o.w.receipt(id, first)
	if refusal, ok := ofCall(err); ok {
		receipt.Err = refusal
		return receipt, nil
	}
	return receipt, err
}

// check makes sure that the changes stand on what the store has. That they do not is a fault of the engine or of the call's Fn.
func (o *overlay) check(changes store.Changes) error {
	if err := o.loadDoubtful(changes); err != nil {
		return err
	}
	for i := range changes.Rows {
		change := &changes.Rows[i]
		c, err := o.current(change)
		if err != nil {
			return err
		}
		if version := c.version(); version != change.From {
			return atFault{fmt.Errorf("change of %s from version %d, it has %d", change.Row.Entity, change.From, version)}
		}
	}
	for _, count := range changes.Counts {
		c, err := o.cell(events.TopicEntity(count.Topic))
		if err != nil {
			return err
		}
		if !c.kept {
			return atFault{fmt.Errorf("count of topic %q: it has no row", count.Topic)}
		}
	}
	return o.checkPermits(changes.Permits)
}

// current is the cell that a change is of.
func (o *overlay) current(change *store.Change) (*cell, error) {
	entity := change.Row.Entity
	if c := o.blank(entity); !c.known && change.From == 0 && !o.doubts(entity) {
		return c, nil
	}
	c, err := o.cell(entity)
	if err == nil && !c.kept {
		err = o.tell(c)
	}
	return c, err
}

// doubts reports whether an entity that is said to be new is looked up. Its first event may be among those that were pruned, and stands in the
// way of another first one no more: it is as old, tells no time, or is of one that has not come.
func (o *overlay) doubts(entity events.Entity) bool {
	if o.trust == doubting || o.pruned.through == 0 {
		return o.trust == doubting
	}
	minted := store.MintedAt(entity.ID)
	return entity.ID.Version() != 7 || !minted.After(o.pruned.at) || minted.After(o.now())
}

// loadDoubtful looks up, all at once, what is said to be new and is not believed to be.
func (o *overlay) loadDoubtful(changes store.Changes) error {
	doubtful := false
	for i := range changes.Rows {
		change := &changes.Rows[i]
		c := o.cells[change.Row.Entity]
		if change.From == 0 && (c == nil || !c.known) && o.doubts(change.Row.Entity) {
			o.blank(change.Row.Entity)
			doubtful = true
		}
	}
	if !doubtful {
		return nil
	}
	if err := o.flushLog(); err != nil {
		return err
	}
	if err := o.loadRows(); err != nil {
		return err
	}
	return o.loadHistories(maps.Values(o.cells))
}

// version is the entity's version as far as the transaction knows it.
func (c *cell) version() int {
	if c.kept {
		return c.row.Version
	}
	for i := len(c.history) - 1; i >= 0; i-- {
		if v := c.history[i].Version; v > 0 {
			return v
		}
	}
	return 0
}

// keep takes in what a call decided.
func (o *overlay) keep(call *store.Call, now time.Time, changes store.Changes) (store.Receipt, error) {
	recording := store.Record(*call, changes, now)
	if n := int64(len(recording.Stored)); n > 0 {
		recording.Place(o.head + 1)
		o.ids[call.ID] = o.head + 1
		o.log = append(o.log, recording)
	}
	told := recording.Events
	for i := range changes.Rows {
		n := len(changes.Rows[i].Transitions)
		o.put(&changes.Rows[i], o.head+1, told[:n])
		o.head += int64(n)
		told = told[n:]
	}
	for _, count := range changes.Counts {
		c := o.cells[events.TopicEntity(count.Topic)]
		c.row.Running += count.Delta
		o.soil(c)
	}
	for i := range changes.Keys {
		o.putKey(changes.Keys[i])
	}
	for i := range changes.Permits {
		o.putPermit(&changes.Permits[i])
	}
	o.woken = changes.Woken(o.woken)
	receipt := store.Receipt{ID: call.ID, Events: recording.Events}
	if err := o.letGo(changes); err != nil {
		return receipt, err
	}
	var err error
	receipt.Rows, err = o.rows(changes)
	return receipt, err
}

// put replaces an entity's row. The events of the change begin at a position.
func (o *overlay) put(change *store.Change, position int64, told []events.Recorded) {
	c := o.cells[change.Row.Entity]
	o.waitingMoved = o.waitingMoved || c.row.Waiting != store.NotWaiting || change.Row.Waiting != store.NotWaiting
	switch {
	case change.From == 0:
		c.place = position
	case !c.kept && len(c.history) > 0 && c.place == 0:
		c.place = c.history[0].Position
	}
	if change.Gone && c.kept && c.entity.Kind == events.KindWorker {
		o.ended = append(o.ended, c.entity.ID)
	}
	running, payload := c.row.Running, c.row.Payload
	c.row, c.kept = change.Row, !change.Gone && tables[c.entity.Kind] != nil // else its history says all of it
	c.row.Running, c.row.Payload = running, payload
	c.known, c.history, c.told = true, nil, false
	if change.Gone && c.entity.Kind.Rests() {
		c.rest(told)
	}
	if change.Payload != nil {
		c.row.Payload = change.Payload
		o.payloads = append(o.payloads, c)
	}
	if change.Result != nil {
		o.results = append(o.results, result{newest(told), change.Result})
	}
	o.snap(c, told)
	o.soil(c)
}

// rest notes what is left of an entity that has no row any more: its newest event, where it is among those of the change.
func (c *cell) rest(told []events.Recorded) {
	for _, r := range slices.Backward(told) {
		if r.Version > 0 {
			c.history, c.told = []events.Recorded{r}, true
			return
		}
	}
}

func (o *overlay) soil(c *cell) {
	if !c.dirty {
		c.dirty = true
		o.dirty = append(o.dirty, c)
	}
}

func (o *overlay) putKey(change store.KeyChange) {
	k, ok := o.keys[change.Key]
	if !ok {
		k = &keyCell{}
		o.keys[change.Key] = k
	}
	k.KeyChange = change
	if !k.dirty {
		k.dirty = true
		o.dirtyKeys = append(o.dirtyKeys, k)
	}
}

// rows is the kept rows of a receipt, those of open claims with their payloads.
func (o *overlay) rows(changes store.Changes) ([]store.Row, error) {
	var bare []*cell
	kept := 0
	for i := range changes.Rows {
		c := o.cells[changes.Rows[i].Row.Entity]
		if c.kept {
			kept++
		}
		if c.kept && c.row.Worker != (events.ID{}) && c.row.Payload == nil {
			bare = append(bare, c)
		}
	}
	if kept == 0 {
		return nil, nil
	}
	if err := o.loadPayloads(bare); err != nil {
		return nil, err
	}
	list := make([]store.Row, 0, kept)
	for i := range changes.Rows {
		if c := o.cells[changes.Rows[i].Row.Entity]; c.kept {
			list = append(list, given(c.row))
		}
	}
	return list, nil
}

// given is a row for a caller, who owns it and shares it with no other caller of the transaction.
func given(row store.Row) store.Row {
	row.Fields = bytes.Clone(row.Fields)
	if row.Payload != nil && row.Worker != (events.ID{}) {
		row.Payload = &store.Payload{Salt: row.Payload.Salt, Bytes: bytes.Clone(row.Payload.Bytes)}
	} else {
		row.Payload = nil
	}
	return row
}
