package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/postgres"
)

// A writer's commit takes so long that readers go without what stands behind it. A message that is moved into the log meanwhile is no more staged and
// cannot be read yet: it is found all the same, and who waits for it is not told that nobody knows it.
func TestAMovedMessageIsFoundBehindASlowCommit(t *testing.T) {
	d := newDesk(t, postgres.Options{ReadPatience: 50 * time.Millisecond})
	id := d.enqueued(orders.Draft(order{7}, foundling.EnqueueOptions{Key: "k"}))[0]
	slow := d.begin(d.app)
	for _, part := range []string{"LOCK TABLE ONLY foundling.events IN ROW EXCLUSIVE MODE", "SELECT nextval('foundling.blocks')"} {
		if _, err := slow.Exec(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	d.move(id)
	info, err := d.client.Get(t.Context(), id)
	if err != nil || info.State != foundling.Queued || info.Key != "k" || string(info.Payload.Bytes) != `{"Number":7}` {
		t.Errorf("%+v, error %v", info, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := d.client.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, foundling.ErrNotFound) {
		t.Errorf("who waits for it: error %v", err)
	}
	if err := d.client.Cancel(t.Context(), "tests", id); err != nil {
		t.Error(err)
	}
	if err := slow.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := d.state(id); got != "cancelled" {
		t.Errorf("at last it is %s", got)
	}
	d.verify(0)
}
