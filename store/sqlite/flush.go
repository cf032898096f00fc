package sqlite

import (
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file writes an overlay's changes to the tables, many rows to a statement.

var (
	insertEvents   = inserting("events", eventColumns)
	insertCommits  = inserting("commits", commitColumns)
	insertIDs      = inserting("used_ids", idColumns)
	insertPayloads = replacing("payloads", payloadColumns, "place")
	insertResults  = inserting("results", resultColumns)
	writeSnapshots = replacing("snapshots", snapshotColumns, "stream")
	replacePlaces  = replacing("places", "message, place, topic", "message")
	replaceKeys    = replacing("keys", keyColumns, "topic, name")
	deleteKeys     = deleting("keys", "topic, name")
)

// flush writes everything.
func (o *overlay) flush() error {
	if err := o.flushRows(); err != nil {
		return err
	}
	var args []any
	for _, c := range o.payloads {
		args = append(args, c.place, c.row.Payload.Salt[:], blob(c.row.Payload.Bytes))
	}
	o.payloads = nil
	if err := o.w.bulk(insertPayloads, args); err != nil {
		return err
	}
	if err := o.flushTold(); err != nil {
		return err
	}
	if err := o.flushKeys(); err != nil {
		return err
	}
	if err := o.flushPermits(); err != nil {
		return err
	}
	return o.flushLog()
}

// flushWaiting makes sure that the tables show who waits for a lock.
func (o *overlay) flushWaiting() error {
	if !o.waitingMoved {
		return nil
	}
	return o.flushRows()
}

// flushRows writes what changed of rows.
func (o *overlay) flushRows() error {
	if len(o.dirty) == 0 {
		return nil
	}
	for _, kind := range events.Kinds() {
		if err := o.flushKind(kind); err != nil {
			return err
		}
	}
	for _, c := range o.dirty {
		c.dirty, c.stored = false, c.kept
	}
	o.dirty, o.waitingMoved = o.dirty[:0], false
	return nil
}

// flushKind writes what changed of the rows of one kind.
func (o *overlay) flushKind(kind events.Kind) error {
	t := tables[kind]
	if t == nil {
		return nil
	}
	var inserts, updates, deletes []any
	for _, c := range o.dirty {
		switch {
		case c.entity.Kind != kind:
		case c.kept && c.stored:
			updates = t.args(updates, c)
		case c.kept:
			inserts = t.args(inserts, c)
		case c.stored:
			deletes = append(deletes, c.primary())
		}
	}
	if err := o.w.bulk(t.inserts, inserts); err != nil {
		return err
	}
	if err := o.w.bulk(t.updates, updates); err != nil {
		return err
	}
	return o.w.bulk(t.deletes, deletes)
}

// primary is by what the row is deleted.
func (c *cell) primary() any {
	if c.entity.Kind == events.KindMessage {
		return c.place
	}
	return keyOf(c.entity)
}

// flushTold writes results, and which events say all of an entity's state.
func (o *overlay) flushTold() error {
	if len(o.results)+len(o.snapshots) == 0 {
		return nil
	}
	var results, snapshots []any
	for _, r := range o.results {
		results = append(results, r.position, r.Salt[:], blob(r.Bytes))
	}
	for _, s := range o.snapshots {
		snapshots = append(snapshots, s.position, stream(s.entity))
	}
	o.results, o.snapshots = nil, nil
	if err := o.w.bulk(insertResults, results); err != nil {
		return err
	}
	return o.w.bulk(writeSnapshots, snapshots)
}

func (o *overlay) flushKeys() error {
	var replaces, deletes []any
	for _, k := range o.dirtyKeys {
		if k.Row == (store.KeyRow{}) {
			deletes = append(deletes, k.Key.Topic, k.Key.Name)
		} else {
			replaces = keyArgs(replaces, &k.KeyChange)
		}
		k.dirty = false
	}
	o.dirtyKeys = nil
	if err := o.w.bulk(replaceKeys, replaces); err != nil {
		return err
	}
	return o.w.bulk(deleteKeys, deletes)
}

// flushLog appends the events and commits so far.
func (o *overlay) flushLog() error {
	var list, commits, ids []any
	for _, r := range o.log {
		for i := range r.Stored {
			list = eventArgs(list, &r.Stored[i])
		}
		commits = commitArgs(commits, r)
		ids = append(ids, r.Commit.ID[:], r.Stored[0].Position)
	}
	o.log = nil
	if err := o.w.bulk(insertEvents, list); err != nil {
		return err
	}
	if err := o.w.bulk(insertCommits, commits); err != nil {
		return err
	}
	return o.w.bulk(insertIDs, ids)
}
