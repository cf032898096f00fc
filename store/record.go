package store

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// Recording is a call's commit in its stored form, for engines.
type Recording struct {
	Stored []events.Stored
	Commit events.StoredCommit
	Events []events.Recorded // the same as they will be read
}

// Record gives the changes of a call their stored form, decided at the store's time now. Positions are still to be given: see Place.
func Record(call Call, changes Changes, now time.Time) *Recording {
	commit := events.Commit{ID: call.ID, At: now, Command: call.Command}
	n := 0
	for i := range changes.Rows {
		n += len(changes.Rows[i].Transitions)
	}
	r := &Recording{Stored: make([]events.Stored, 0, n), Events: make([]events.Recorded, 0, n)}
	for _, change := range changes.Rows {
		for _, t := range change.Transitions {
			r.Stored = append(r.Stored, events.Encode(change.Row.Entity, t))
			r.Events = append(r.Events, events.Recorded{Transition: t, Entity: change.Row.Entity, Commit: &commit})
		}
	}
	r.Commit = events.Seal(commit, r.Stored)
	commit.Count, commit.Checksum = r.Commit.Count, r.Commit.Checksum
	return r
}

// Place gives the events their positions, from first on.
func (r *Recording) Place(first int64) {
	for i := range r.Stored {
		r.Stored[i].Position = first + int64(i)
		r.Events[i].Position = first + int64(i)
	}
}
