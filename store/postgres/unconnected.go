package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// ErrUnconnected says that a store has no connection of its own, so that it can do no more than stage messages in transactions of others.
var ErrUnconnected = errors.New("this store has no connection: it only stages messages in transactions (EnqueueTx); postgres.Open gives one that does all")

// Unconnected is a store for clients that do no more than [EnqueueTx] and [EnqueueSQLTx]: it asks the server for nothing, so that their role needs no
// right but to insert into the table "staged" of the schema. Everything else is an [ErrUnconnected]. Of the options it heeds Schema, NoNotify and Clock.
func Unconnected(o Options) (store.Store, error) {
	o, err := o.settled()
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return unconnected{newDesk(o)}, nil
}

type unconnected struct{ desk *desk }

// stageIn implements stagesIn.
func (u unconnected) stageIn(ctx context.Context, run inTx, list []store.Staged) error {
	return u.desk.stage(ctx, run, list)
}

// Near is the time of the clock that the options give; zero where they give none.
func (u unconnected) Near() time.Time {
	if u.desk.clock == nil {
		return time.Time{}
	}
	return u.desk.clock()
}

func (unconnected) Decide(context.Context, ...store.Call) ([]store.Receipt, error) {
	return nil, ErrUnconnected
}

func (unconnected) Outcome(context.Context, store.CommitID) (store.Receipt, bool, error) {
	return store.Receipt{}, false, ErrUnconnected
}

func (unconnected) Read(context.Context, store.Cursor, store.Filter) iter.Seq2[events.Recorded, error] {
	return none[events.Recorded]
}

func (unconnected) After(events.Recorded) store.Cursor { return "" }

func (unconnected) Head(context.Context) (store.Cursor, error) { return "", ErrUnconnected }

func (unconnected) Rows(context.Context, store.RowFilter) iter.Seq2[store.Row, error] {
	return none[store.Row]
}

func (unconnected) Permits(context.Context, store.PermitFilter) iter.Seq2[store.Permit, error] {
	return none[store.Permit]
}

func (unconnected) Contents(context.Context, events.ID) (store.Contents, error) {
	return store.Contents{}, ErrUnconnected
}

func (unconnected) Now(context.Context) (time.Time, error) { return time.Time{}, ErrUnconnected }

func (unconnected) Close() error { return nil }

// none is a reading that comes to nothing.
func none[T any](yield func(T, error) bool) {
	var zero T
	yield(zero, ErrUnconnected)
}
