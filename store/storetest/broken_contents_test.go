package storetest_test

import (
	"cmp"
	"context"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// content is an engine whose contents are changed on their way; without a function of how, they are read whatever the context says, and
// after its end.
type content struct {
	store.Store
	bend func(events.ID, *store.Contents)
}

func contents(f func(*store.Contents)) func(store.Store) store.Store {
	return func(s store.Store) store.Store {
		if f == nil {
			return content{Store: s}
		}
		return content{s, func(_ events.ID, c *store.Contents) { f(c) }}
	}
}

func (c content) Unwrap() store.Store { return c.Store }

func (c content) Contents(ctx context.Context, id events.ID) (store.Contents, error) {
	if c.bend == nil {
		return store.Contents{}, nil
	}
	got, err := c.Store.Contents(ctx, id)
	if err == nil {
		c.bend(id, &got)
	}
	return got, err
}

// remembersContents is an engine that never lets go of any.
func remembersContents(s store.Store) store.Store {
	remembered := map[events.ID]store.Contents{}
	return content{
		Store: changes(func(c *store.Changes) {
			for _, change := range c.Rows {
				if change.Payload != nil || change.Result != nil {
					r := remembered[change.Row.Entity.ID]
					r.Payload, r.Result = cmp.Or(change.Payload, r.Payload), cmp.Or(change.Result, r.Result)
					remembered[change.Row.Entity.ID] = r
				}
			}
		})(s),
		bend: func(id events.ID, c *store.Contents) {
			c.Payload, c.Result = cmp.Or(c.Payload, remembered[id].Payload), cmp.Or(c.Result, remembered[id].Result)
		},
	}
}

// remembersTopics is an engine that tells the topic of a message for ever once it did.
func remembersTopics(s store.Store) store.Store {
	remembered := map[events.ID]string{}
	return content{s, func(id events.ID, c *store.Contents) {
		c.Topic = cmp.Or(c.Topic, remembered[id])
		remembered[id] = c.Topic
	}}
}

// sharesContents is an engine that gives everybody the same bytes.
func sharesContents(s store.Store) store.Store {
	shared := map[events.ID]store.Contents{}
	return content{s, func(id events.ID, c *store.Contents) {
		if _, ok := shared[id]; !ok {
			shared[id] = *c
		}
		*c = shared[id]
	}}
}

// forgetsContents is an engine that prunes contents with the event that enqueued them, though the message is in one of some states; without
// any, in any.
func forgetsContents(states []events.State) func(store.Store) store.Store {
	return func(s store.Store) store.Store {
		forgotten := map[events.ID]bool{}
		return content{
			Store: calls(func(c *store.Call) {
				fn := c.Fn
				c.Fn = func(v store.View) (store.Changes, error) {
					changes, err := fn(v)
					for _, row := range v.Pruning.Rows {
						if err == nil && changes.Prune > 0 && (states == nil || slices.Contains(states, row.State)) {
							forgotten[row.Entity.ID] = true
						}
					}
					return changes, err
				}
			})(s),
			bend: func(id events.ID, c *store.Contents) {
				if forgotten[id] {
					*c = store.Contents{}
				}
			},
		}
	}
}
