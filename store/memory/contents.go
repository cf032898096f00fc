package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/tidwall/btree"
)

// Contents implements store.Store.
func (s *Store) Contents(ctx context.Context, message events.ID) (store.Contents, error) {
	if err := s.enter(ctx); err != nil {
		return store.Contents{}, fmt.Errorf("memory: contents: %w", err)
	}
	defer s.mu.Unlock()
	c := s.contents[message]
	return store.Contents{Payload: own(c.Payload), Result: own(c.Result), Topic: s.topics[message]}, nil
}

// fill keeps what a change brings of a message's contents.
func (s *Store) fill(change store.Change) {
	if change.Payload == nil && change.Result == nil {
		return
	}
	id := change.Row.Entity.ID
	c := s.contents[id]
	c.Payload, c.Result = cmp.Or(own(change.Payload), c.Payload), cmp.Or(own(change.Result), c.Result)
	s.contents[id] = c
}

// own is a copy of bytes for who keeps them from here on.
func own(p *store.Payload) *store.Payload {
	if p == nil {
		return nil
	}
	return &store.Payload{Salt: p.Salt, Bytes: bytes.Clone(p.Bytes)}
}

// withPayload is a message's row with its payload, which is still the store's.
func (s *Store) withPayload(row store.Row) store.Row {
	if row.Entity.Kind == events.KindMessage {
		row.Payload = s.contents[row.Entity.ID].Payload
	}
	return row
}

// keys is who has which, and those whose messages have ended by the time until which they are kept.
type keys struct {
	rows   map[store.Key]store.KeyRow
	closed *btree.BTreeG[closedKey]
}

type closedKey struct {
	store.Key
	until time.Time
}

func newKeys() *keys {
	return &keys{map[store.Key]store.KeyRow{}, btree.NewBTreeGOptions(byEnd, btree.Options{NoLocks: true})}
}

func byEnd(a, b closedKey) bool {
	return cmp.Or(a.until.Compare(b.until), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Name, b.Name)) < 0
}

func (k *keys) change(c store.KeyChange) {
	if old, ok := k.rows[c.Key]; ok && !old.Open {
		k.closed.Delete(closedKey{c.Key, old.UntilAt})
	}
	if c.Row == (store.KeyRow{}) {
		delete(k.rows, c.Key)
		return
	}
	k.rows[c.Key] = c.Row
	if !c.Row.Open {
		k.closed.Set(closedKey{c.Key, c.Row.UntilAt})
	}
}

// drop lets go of the keys whose time is over.
func (k *keys) drop(now time.Time) {
	for {
		first, ok := k.closed.Min()
		if !ok || first.until.After(now) {
			return
		}
		k.closed.Delete(first)
		delete(k.rows, first.Key)
	}
}
