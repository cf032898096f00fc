package postgres

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

func TestNamesThatTheServerCannotHaveRefuseTheirCallAlone(t *testing.T) {
	b := &beds{t, openAt(t, pgtest.Database(t), Options{})}
	for _, name := range []string{"a\x00b", "\xff"} {
		for i, need := range []store.Need{
			{Held: []events.Entity{events.TopicEntity(name)}}, {Claim: []store.Page{{Topic: name, N: 1}}}, {Locks: []string{name}},
			{Keys: []store.Key{{Topic: "a", Name: name}}}, {Permits: []store.PermitKey{{Lock: name, Token: 1}}}, {Holders: []store.LockPage{{Lock: name, N: 1}}},
			{Uncounted: []store.Page{{Topic: name, N: 1}}},
		} {
			call := store.Call{ID: b.id(), Command: events.Command{Name: "test"}, Need: need, Fn: func(store.View) (store.Changes, error) { return store.Changes{}, nil }}
			ok := b.enqueueing("mail", "", 1)
			receipts, err := b.s.Decide(t.Context(), ok, call)
			if err != nil || receipts[0].Err != nil || receipts[1].Err == nil {
				t.Errorf("%q, need %d: %v", name, i, err)
			}
		}
	}
}
