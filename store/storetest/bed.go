package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// patience is how long a test waits for what must come before it fails.
const patience = 20 * time.Second

// bed is one store under test, with what the tests do to it over and over. Methods that talk to the store end the test where it
// answers with an error, so they belong to the test's own goroutine; those that only make a call may be used by any.
type bed struct {
	t     reporter
	real  *testing.T // what an engine is opened for
	ctx   context.Context
	s     store.Store
	suite Suite

	goods int // how often the topic of refuses was configured

	mu    sync.Mutex
	clock time.Time // of the store, where the suite turns it
}

// reporter is what a sentence is tested for: a *testing.T, unless the suite itself is under test.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

func (s Suite) bed(t *testing.T) *bed {
	t.Helper()
	return s.reporting(t.Context(), t, t)
}

// reporting is a bed on a new store whose sentences are told to a reporter.
func (s Suite) reporting(ctx context.Context, r reporter, t *testing.T) *bed {
	b := &bed{t: r, real: t, ctx: ctx, suite: s}
	b.s = s.Open(t)
	b.closing(b.s)
	return b
}

// other is a bed with the same suite on a store of its own.
func (b *bed) other() *bed { return b.suite.reporting(b.ctx, b.t, b.real) }

// turned is a bed with the same suite whose store has a clock that the test turns.
func (b *bed) turned() *bed {
	b.t.Helper()
	c := &bed{t: b.t, real: b.real, ctx: b.ctx, suite: b.suite, clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c.s = b.suite.OpenAt(b.real, c.now)
	c.closing(c.s)
	return c
}

// again is a second process on what the bed's store keeps.
func (b *bed) again() *bed {
	b.t.Helper()
	c := &bed{t: b.t, real: b.real, ctx: b.ctx, suite: b.suite}
	c.s = b.suite.Again(b.real, b.s)
	c.closing(c.s)
	return c
}

func (b *bed) closing(s store.Store) {
	b.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.t.Errorf("close: %v", err)
		}
	})
}

// now is the machine's time, or the time that the test has turned the clock to.
func (b *bed) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clock.IsZero() {
		return time.Now()
	}
	return b.clock
}

func (b *bed) turn(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(d)
}

// mint is a UUIDv7 of a time. Package storetest makes nobody download anything, a generator of ids included.
func mint(at time.Time) events.ID {
	var id events.ID
	_, _ = rand.Read(id[:]) // it never returns an error
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

func (b *bed) id() events.ID { return mint(b.now()) }

func (b *bed) origin() calls.Origin { return calls.Origin{ID: b.id(), Actor: "storetest"} }

// ok ends the test on an error.
func (b *bed) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// is ends the test unless the error is of the class.
func (b *bed) is(err, class error) {
	b.t.Helper()
	if !errors.Is(err, class) {
		b.t.Fatalf("error %v, want one that is %q", err, class)
	}
}

// want ends the test unless both are equal.
func want[T comparable](b *bed, what string, got, wanted T) {
	b.t.Helper()
	if got != wanted {
		b.t.Fatalf("%s: got %v, want %v", what, got, wanted)
	}
}

// decide commits calls and gives their receipts, refused or not.
func (b *bed) decide(list ...store.Call) []store.Receipt {
	b.t.Helper()
	receipts, err := b.s.Decide(b.ctx, list...)
	b.ok(err)
	want(b, "receipts", len(receipts), len(list))
	return receipts
}

// commit commits one call that must not be refused.
func (b *bed) commit(call store.Call) store.Receipt {
	b.t.Helper()
	receipt := b.decide(call)[0]
	b.ok(receipt.Err)
	return receipt
}

// draft is a message to be, due at once.
func (b *bed) draft(topic string) fsm.Draft {
	return fsm.Draft{ID: b.id(), EnqueueMessage: fsm.EnqueueMessage{Topic: topic}}
}

// drafts is n messages to be of one topic.
func (b *bed) drafts(topic string, n int) []fsm.Draft {
	list := make([]fsm.Draft, n)
	for i := range list {
		list[i] = b.draft(topic)
	}
	return list
}

// payload is what a message of the suite carries: bytes that name it.
func payload(id events.ID) store.Payload {
	return store.Payload{Salt: [16]byte(id), Bytes: []byte("payload of " + id.String())}
}

// enqueueing is the call that enqueues drafts, each topic made known without a limit where it is not known yet.
func (b *bed) enqueueing(drafts ...fsm.Draft) store.Call {
	c := fsm.Enqueue{Topics: map[string]fsm.TopicStart{}}
	payloads := make([]store.Payload, len(drafts))
	for i, d := range drafts {
		payloads[i] = payload(d.ID)
		d.Payload = events.Facts{Size: len(payloads[i].Bytes), Commitment: events.Commitment(payloads[i].Salt, payloads[i].Bytes)}
		c.Drafts = append(c.Drafts, d)
		c.Topics[d.Topic] = fsm.TopicStart{}
	}
	call, _ := calls.Enqueue(b.origin(), c, payloads)
	return call
}

// enqueue makes n messages of a topic due at once.
func (b *bed) enqueue(topic string, n int) store.Receipt {
	b.t.Helper()
	return b.commit(b.enqueueing(b.drafts(topic, n)...))
}

// configuring is the call that sets a topic's limit.
func (b *bed) configuring(topic string, limit int) store.Call {
	return calls.OperateTopic(b.origin(), fsm.OperateTopic{Topic: topic, Command: fsm.ConfigureTopic{Limit: limit}})
}

// claiming is the call by which a worker claims n messages of each topic.
func (b *bed) claiming(worker events.ID, n int, topics ...string) store.Call {
	c := fsm.Claim{Worker: worker}
	for _, topic := range topics {
		c.Asks = append(c.Asks, fsm.Ask{Topic: topic, N: n})
	}
	return calls.Claim(b.origin(), c)
}

// claim is what a worker is granted.
func (b *bed) claim(worker events.ID, n int, topics ...string) []fsm.Message {
	b.t.Helper()
	return b.messages(claimedOf(b.commit(b.claiming(worker, n, topics...))))
}

// messages is the messages that rows keep.
func (b *bed) messages(list []store.Row) []fsm.Message {
	b.t.Helper()
	messages := make([]fsm.Message, len(list))
	for i, row := range list {
		m, err := calls.Message(row)
		b.ok(err)
		messages[i] = m
	}
	return messages
}

// completing is the call by which a worker completes its claims.
func (b *bed) completing(list ...fsm.Message) store.Call {
	c := fsm.Settle{Recordable: len(list)}
	for _, m := range list {
		c.Sender = m.Worker
		c.Items = append(c.Items, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token}, Permit: m.Permit()})
	}
	call, _ := calls.Settle(b.origin(), c, nil)
	return call
}

// log is all recorded events that pass a filter.
func (b *bed) log(f store.Filter) []events.Recorded {
	b.t.Helper()
	return b.behind("", f)
}

// behind is the recorded events behind a cursor.
func (b *bed) behind(after store.Cursor, f store.Filter) []events.Recorded {
	b.t.Helper()
	var list []events.Recorded
	for r, err := range b.s.Read(b.ctx, after, f) {
		b.ok(err)
		list = append(list, r)
	}
	return list
}

func (b *bed) head() store.Cursor {
	b.t.Helper()
	head, err := b.s.Head(b.ctx)
	b.ok(err)
	return head
}

// kept is the kept rows that pass a filter.
func (b *bed) kept(f store.RowFilter) []store.Row {
	b.t.Helper()
	var list []store.Row
	for row, err := range b.s.Rows(b.ctx, f) {
		b.ok(err)
		list = append(list, row)
	}
	return list
}

// row is the kept row of one entity, with its payload.
func (b *bed) row(e events.Entity) store.Row {
	b.t.Helper()
	list := b.kept(store.RowFilter{Entities: []events.Entity{e}, Payloads: true})
	want(b, "rows of "+e.String(), len(list), 1)
	return list[0]
}

// outcome settles an id.
func (b *bed) outcome(id store.CommitID) (store.Receipt, bool) {
	b.t.Helper()
	receipt, committed, err := b.s.Outcome(b.ctx, id)
	b.ok(err)
	return receipt, committed
}

// exact is a recorded event down to its stored bytes.
func exact(r events.Recorded) string {
	s, c := events.Encode(r.Entity, r.Transition), r.Commit
	return fmt.Sprintf("%s\n%s in commit %s at %s of %d, checksum %08x: %s by %s (%s) %s", new(events.Names).Line(r), s.Body,
		c.ID, c.At.Format(time.RFC3339Nano), c.Count, c.Checksum, c.Command.Name, c.Command.Actor, c.Command.Trace, c.Command.Params)
}

// same ends the test unless both lists hold the same events, byte for byte.
func (b *bed) same(what string, got, wanted []events.Recorded) {
	b.t.Helper()
	for i := range min(len(got), len(wanted)) {
		if g, w := exact(got[i]), exact(wanted[i]); g != w {
			b.t.Fatalf("%s: event %d is\n%s\nwant\n%s", what, i, g, w)
		}
	}
	want(b, what+": events", len(got), len(wanted))
}

// exactRow is a row as text.
func exactRow(r store.Row) string {
	text := fmt.Sprintf("%s v%d %s %s topic=%q priority=%s due=%s worker=%s claimed=%s counted=%t lock=%q lock_token=%d waiting=%d running=%d",
		r.Entity, r.Version, r.State, r.Fields, r.Topic, r.Priority, r.DueAt.Format(time.RFC3339Nano), r.Worker,
		r.ClaimedAt.Format(time.RFC3339Nano), r.Counted, r.Lock, r.LockToken, r.Waiting, r.Running)
	if r.Payload != nil {
		text += fmt.Sprintf(" payload=%x:%x", r.Payload.Salt, r.Payload.Bytes)
	}
	return text
}

// sameRows ends the test unless both lists hold the same rows.
func (b *bed) sameRows(what string, got, wanted []store.Row) {
	b.t.Helper()
	for i := range min(len(got), len(wanted)) {
		want(b, fmt.Sprintf("%s: row %d", what, i), exactRow(got[i]), exactRow(wanted[i]))
	}
	want(b, what+": rows", len(got), len(wanted))
}

// entities is whose rows they are.
func entities(list []store.Row) []events.Entity {
	var all []events.Entity
	for _, row := range list {
		all = append(all, row.Entity)
	}
	return all
}

// types is the types of events in order.
func types(list []events.Recorded) []events.Type {
	var all []events.Type
	for _, r := range list {
		all = append(all, r.Event.Type())
	}
	return all
}

// count is how many of the events are of a type.
func count(list []events.Recorded, typ events.Type) int {
	return len(slices.DeleteFunc(types(list), func(t events.Type) bool { return t != typ }))
}

// together runs a function n times at once, and gives what the store answered.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	return errors.Join(errs...)
}
