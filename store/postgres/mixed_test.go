package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
)

// client is one of a crowd that gives all kinds of commands, one after the other.
type client struct {
	*crowd
	s      *postgres.Store
	worker events.ID
	open   []store.Row // its claims
	locks  []fsm.PermitKey

	pending *fsm.Permit // of the lock that is being acquired

	client *foundling.Client // for what is staged
	app    *pgx.Conn         // and the connection that stages it
	known  calls.Known       // to prunes
	pruned *fsm.Pruned       // what the last one saw
}

func newOne(c *crowd, s *postgres.Store) *client {
	c.t.Helper()
	app, err := pgx.Connect(c.ctx, c.dsn)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = app.Close(context.Background()) })
	stager, err := foundling.NewClient(s, foundling.ClientOptions{Actor: c.origin().Actor})
	if err != nil {
		c.t.Fatal(err)
	}
	return &client{crowd: c, s: s, worker: newID(), client: stager, app: app}
}

// commands is what a client may do. Each gives calls; a refusal by the rules is as good as anything else.
func (c *client) commands() map[string]func() []store.Call {
	topic := func() string { return []string{"narrow", "wide", "other"}[rand.N(3)] }
	lock := func() string { return []string{"", "", "a", "b", "c"}[rand.N(5)] }
	all := c.upkeep()
	maps.Copy(all, map[string]func() []store.Call{
		"enqueue": func() []store.Call { return []store.Call{c.enqueueing(topic(), lock(), 1+rand.N(5))} },
		"enqueue to both": func() []store.Call {
			return []store.Call{c.enqueueing("wide", lock(), 2), c.enqueueing("narrow", lock(), 2)}
		},
		"enqueue keyed": func() []store.Call { return []store.Call{c.keyed(topic()), c.keyed(topic())} },
		"claim":         func() []store.Call { return []store.Call{c.claiming("wide", "narrow", "other")} },
		"claim again":   func() []store.Call { return []store.Call{c.claiming("narrow"), c.claiming("narrow", "wide")} },
		"settle": func() []store.Call {
			open := c.open
			c.open = nil
			return []store.Call{c.settling(c.worker, open)}
		},
		"settle unread": func() []store.Call {
			open := c.open
			c.open = nil
			call := c.settling(c.worker, open)
			for _, row := range call.Need.Known {
				call.Need.Held = append(call.Need.Held, row.Entity)
			}
			call.Need.Known = nil
			return []store.Call{call}
		},
		"settle and claim": func() []store.Call {
			open := c.open
			c.open = nil
			return []store.Call{c.settling(c.worker, open), c.claiming("narrow", "other")}
		},
		"configure": func() []store.Call {
			limit := []int{0, 2, 4}[rand.N(3)]
			return []store.Call{calls.OperateTopic(c.origin(), fsm.OperateTopic{Topic: "other", Command: fsm.ConfigureTopic{Limit: limit}})}
		},
		"count": func() []store.Call {
			return []store.Call{calls.CountClaims(c.origin(), fsm.CountClaims{Topic: "other", Page: 5})}
		},
		"cancel":    func() []store.Call { return c.operating(fsm.CancelMessage{By: "races"}) },
		"take back": func() []store.Call { return c.operating(fsm.TakeBackMessage{By: "races"}) },
		"erase":     c.erasing,
		"acquire":   c.acquiring,
		"unlock": func() []store.Call {
			call, _ := calls.Unlock(c.origin(), fsm.Unlock{Worker: c.worker, Permits: c.locks, Recordable: len(c.locks)})
			c.locks = nil
			return []store.Call{call}
		},
		"stop": func() []store.Call {
			return []store.Call{calls.OperateWorker(c.origin(), fsm.OperateWorker{Worker: c.worker, Command: fsm.StopWorker{}})}
		},
		"register": func() []store.Call {
			c.worker, c.open, c.locks = newID(), nil, nil
			return []store.Call{calls.OperateWorker(c.origin(), fsm.OperateWorker{Worker: c.worker, Command: fsm.StartWorker{}})}
		},
	})
	return all
}

func (c *client) keyed(topic string) store.Call {
	id := newID()
	p := store.Payload{Salt: [16]byte(id), Bytes: []byte("payload of " + id.String())}
	call, _ := calls.Enqueue(c.origin(), fsm.Enqueue{Topics: map[string]fsm.TopicStart{}, Drafts: []fsm.Draft{{
		ID: id, EnqueueMessage: fsm.EnqueueMessage{Topic: topic, Key: fmt.Sprint("key", rand.N(5)),
			Payload: events.Facts{Size: len(p.Bytes), Commitment: events.Commitment(p.Salt, p.Bytes)}},
	}}}, []store.Payload{p})
	return call
}

func (c *client) claiming(topics ...string) store.Call {
	claim := fsm.Claim{Worker: c.worker}
	for _, topic := range topics {
		claim.Asks = append(claim.Asks, fsm.Ask{Topic: topic, N: 1 + rand.N(4)})
	}
	return calls.Claim(c.origin(), claim)
}

// some is a few messages.
func (c *client) some() (rows []store.Row) {
	for row, err := range c.s.Rows(c.ctx, store.RowFilter{Kind: events.KindMessage, After: events.MessageEntity(newID()), Order: store.Falling, Limit: 1 + rand.N(12)}) {
		if err != nil {
			c.t.Error(err)
			break
		}
		rows = append(rows, row)
	}
	return rows
}

func (c *client) operating(command fsm.MessageCommand) []store.Call {
	rows := c.some()
	if len(rows) == 0 {
		return nil
	}
	row := rows[rand.N(len(rows))]
	call, _, err := calls.Operate(c.origin(), fsm.Operate{IDs: []events.ID{row.Entity.ID}, Command: command}, rows)
	if err != nil {
		c.t.Error(err)
	}
	return []store.Call{call}
}

func (c *client) erasing() []store.Call {
	var ids []events.ID
	for _, row := range c.some() {
		ids = append(ids, row.Entity.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	call, _ := calls.Erase(c.origin(), fsm.Erase{IDs: ids[:1], By: "races"})
	return []store.Call{call}
}

func (c *client) acquiring() []store.Call {
	name := []string{"a", "b", "c", fmt.Sprint("session", rand.N(200))}[rand.N(4)]
	call, permit := calls.Acquire(c.origin(), fsm.Acquire{Lock: name, Worker: c.worker})
	c.pending = permit
	return []store.Call{call}
}

// run gives commands until ctx ends.
func (c *client) run(ctx context.Context) error {
	commands := c.commands()
	names := slices.Sorted(maps.Keys(commands))
	for ctx.Err() == nil {
		name := names[rand.N(len(names))]
		list := commands[name]()
		if len(list) == 0 {
			continue
		}
		receipts, err := c.s.Decide(ctx, list...)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, r := range receipts {
			var corrupt *events.Corrupt
			if errors.As(r.Err, &corrupt) {
				return fmt.Errorf("%s: %w", name, r.Err)
			}
			for _, row := range claimed(r) {
				if row.Worker == c.worker && name != "settle" && name != "settle unread" {
					c.open = append(c.open, row)
				}
			}
			if name == "acquire" && len(r.Events) > 0 {
				c.locks = append(c.locks, fsm.PermitKey{Lock: c.pending.Lock, Token: c.pending.Token})
			}
			c.count(name, r)
		}
	}
	return nil
}

// count notes what became of commands.
func (c *client) count(name string, r store.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.Err != nil:
		c.outcomes[name+": refused"]++
	case len(r.Events) == 0:
		c.outcomes[name+": nothing"]++
	default:
		c.outcomes[name]++
	}
}

// Every command against every other, of many clients: nobody waits for ever, the server finds no deadlock, and every row is the fold of its events.
func TestAllCommandsAtOnce(t *testing.T) {
	c := newCrowd(t, 2, map[string]int{"narrow": 3, "wide": 0, "other": 0})
	const clients, lasts = 12, 20 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var wg sync.WaitGroup
	for i := range clients {
		one := newOne(c, c.stores[i%len(c.stores)])
		wg.Go(func() {
			if err := one.run(ctx); err != nil {
				t.Error(err)
				cancel()
			}
		})
	}
	wg.Wait()
	t.Log(c.outcomes)
	c.log()
	c.quiet()
	c.verify()
	for _, name := range slices.Sorted(maps.Keys((&client{crowd: c}).commands())) {
		byChance := []string{"take back", "erase", "stage", "repair lock"} // staging is no command, and the last is none that may change anything
		if c.outcomes[name] == 0 && !slices.Contains(byChance, name) {
			t.Errorf("no command %q changed anything", name)
		}
	}
	if n := c.outcomes["repair lock"]; n > 0 {
		t.Errorf("a lock was free while messages waited for it, %d times", n)
	}
}
