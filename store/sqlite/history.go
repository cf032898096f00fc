package sqlite

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

const (
	beyondQuery  = "SELECT " + eventColumns + " FROM events WHERE position > ? ORDER BY position LIMIT 1"
	commitQuery  = "SELECT " + commitColumns + " FROM commits WHERE first = ?"
	eventsQuery  = "SELECT " + eventColumns + " FROM events WHERE position BETWEEN ? AND ? ORDER BY position"
	aloneColumns = eventColumns + ", " + commitColumns
)

// Events, each with the commit that it should belong to.
var (
	aloneQuery = "SELECT " + of("e", eventColumns) + ", " + of("c", commitColumns) + " FROM events e LEFT JOIN commits c" +
		" ON c.first = (SELECT max(first) FROM commits WHERE first <= e.position) WHERE"
	selectHistories = among(aloneQuery, "e.stream").behind(" ORDER BY e.position")
	// The newest event of each stream that moved its entity.
	selectNewest = &bulk{"WITH wanted (stream) AS (VALUES ", "(?)", ") " + aloneQuery + " e.position IN (SELECT (SELECT position" +
		" FROM events INDEXED BY events_stream WHERE stream = w.stream AND version IS NOT NULL ORDER BY version DESC LIMIT 1) FROM wanted w)", 1}
	streamQuery = aloneQuery + " e.stream = ? AND e.position > ? ORDER BY e.position LIMIT ?"
)

// prunedReceipt is that of an earlier commit whose events have gone: that it was committed is all that is known.
func prunedReceipt(id store.CommitID) store.Receipt {
	return store.Receipt{ID: id, Err: fmt.Errorf("commit %s was kept, and its events are not any more: %w", id, store.ErrPruned)}
}

// receiptOf is that of an earlier commit, in a transaction that knows nothing yet.
func (w *writer) receiptOf(id store.CommitID, first int64) (store.Receipt, error) {
	l, err := reachOf(w.query)
	if err != nil {
		return store.Receipt{ID: id}, err
	}
	if first <= l.through {
		return prunedReceipt(id), nil
	}
	return w.receipt(id, first)
}

// receipt is that of an earlier commit.
func (w *writer) receipt(id store.CommitID, first int64) (store.Receipt, error) {
	receipt := store.Receipt{ID: id}
	var commit placed
	r := newRecord(commitColumns)
	if err := w.query(r, func() error { commit = r.commit(0); return nil }, commitQuery, first); err != nil {
		return receipt, err
	}
	if commit.first == 0 || commit.wrong != nil {
		return receipt, lost(w.query, first, fmt.Sprintf("its commit %s is missing or changed", id))
	}
	stored, err := readEvents(w.query, first, commit.next()-1)
	if err == nil {
		receipt.Events, err = commit.decode(w.query, stored)
	}
	return receipt, err
}

// readEvents reads the events of some positions, as many as there are.
func readEvents(from source, first, last int64) ([]events.Stored, error) {
	var list []events.Stored
	r := newRecord(eventColumns)
	err := from(r, func() error {
		event, err := r.event()
		if err == nil {
			list = append(list, event)
		}
		return err
	}, eventsQuery, first, last)
	return list, err
}

// decode checks a commit with its events and gives them back.
func (p *placed) decode(from source, stored []events.Stored) ([]events.Recorded, error) {
	for i := range min(len(stored)+1, p.Count) {
		if want := p.first + int64(i); i == len(stored) || stored[i].Position != want {
			return nil, missing(from, want)
		}
	}
	return events.DecodeCommit(p.StoredCommit, stored)
}

// alone is an event that was read without the rest of its commit: aloneColumns.
func (r *record) alone() (events.Recorded, error) {
	stored, err := r.event()
	if err != nil {
		return events.Recorded{Entity: stored.Entity, Position: stored.Position}, err
	}
	corrupt := func(detail string) (events.Recorded, error) {
		return events.Recorded{Entity: stored.Entity, Position: stored.Position},
			&events.Corrupt{Entity: stored.Entity, Version: stored.Version, Position: stored.Position, Detail: "its commit: " + detail}
	}
	if r.null(len(r.columns) - width(commitColumns)) {
		return corrupt("it is missing")
	}
	p := r.commit(width(eventColumns))
	if p.wrong != nil {
		return corrupt(p.wrong.Error())
	}
	if stored.Position >= p.next() {
		return corrupt("it is missing")
	}
	commit, err := p.Header()
	if err != nil {
		return corrupt(err.Error())
	}
	return stored.Decode(commit)
}

// histories reads events of some streams, of each in the order of the log.
func (w *writer) histories(which *bulk, streams []any, found func(events.Recorded, error)) error {
	r := newRecord(aloneColumns)
	return w.selectAll(which, streams, r, func() error {
		found(r.alone())
		return nil
	})
}
