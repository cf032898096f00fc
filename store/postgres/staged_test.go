package postgres

import (
	"context"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// Who asks for many messages that are staged, of which each is large, does not get all of them at once.
func TestAPageOfNamedStagedMessagesIsBoundedByItsBytes(t *testing.T) {
	h := newHand(t, openAt(t, pgtest.Database(t), Options{}))
	const many = 6
	list := make([]store.Staged, many)
	ids := make([]events.ID, many)
	for i := range list {
		ids[i] = events.ID{15: byte(i + 1)}
		list[i] = store.Staged{Message: ids[i], Topic: "t", Draft: []byte("{}"), Payload: store.Payload{Bytes: make([]byte, stagedBytes/2+1)}}
	}
	err := h.s.desk.stage(t.Context(), func(ctx context.Context, text string, args []any) error {
		_, err := h.conn.Exec(ctx, text, args...)
		return err
	}, list)
	if err != nil {
		t.Fatal(err)
	}
	page, err := h.s.stagedPage(t.Context(), store.StagedFilter{Messages: ids}, stagedRows)
	if err != nil || len(page) != 2 {
		t.Errorf("%d come in a page of %d bytes, want 2; error %v", len(page), stagedBytes, err)
	}
	for one, err := range h.s.Staged(t.Context(), store.StagedFilter{Messages: ids}) {
		if err != nil || one.Message != ids[0] {
			t.Fatalf("%s comes where %s was staged, error %v", one.Message, ids[0], err)
		}
		ids = ids[1:]
	}
	if len(ids) > 0 {
		t.Errorf("%d do not come", len(ids))
	}
}
