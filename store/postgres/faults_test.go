package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// proxied is a store behind a proxy, with a topic and a message in it, that has committed before.
func proxied(t *testing.T) (*pgtest.Proxy, *beds) {
	t.Helper()
	dsn := pgtest.Database(t)
	p := pgtest.NewProxy(t, dsn)
	b := &beds{t: t, s: openAt(t, p.DSN(), Options{})}
	var err error
	if b.s.powers.hints.config, err = pgx.ParseConfig(dsn); err != nil { // hints are committed beside, and not what is to be hit
		t.Fatal(err)
	}
	b.configure("mail", 0)
	b.enqueue("mail", "", 3)
	b.claim(b.id(), "mail", 1)
	await(t, "nothing is committed beside: it is noted when the range began", func() bool {
		r := &b.s.ranges
		noted := !r.current().begun.IsZero()
		r.mu.Lock()
		defer r.mu.Unlock()
		return noted && !r.keeping
	})
	return p, b
}

// Whether a commit happened whose answer was lost, Outcome tells, and its answer is final.
func TestALostAnswerIsUnknownAndSettled(t *testing.T) {
	for _, test := range []struct {
		name      string
		fault     pgtest.Fault
		committed bool
	}{
		{"the answer to COMMIT does not arrive", pgtest.Fault{From: pgtest.Backend, Match: pgtest.Says("commit"), Do: pgtest.CutBefore}, true},
		{"half of the answer arrives", pgtest.Fault{From: pgtest.Backend, Match: pgtest.Says("commit"), Do: pgtest.CutWithin}, true},
		{"COMMIT does not arrive", pgtest.Fault{From: pgtest.Client, Match: pgtest.Says("commit"), Do: pgtest.CutBefore}, false},
		{"the events do not arrive", pgtest.Fault{From: pgtest.Client, Match: pgtest.Says("lock table"), Do: pgtest.CutBefore}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, b := proxied(t)
			draft := fsm.Draft{ID: b.id(), EnqueueMessage: fsm.EnqueueMessage{Topic: "mail", Payload: events.Facts{Commitment: events.Commitment([16]byte{}, nil)}}}
			enqueue, _ := calls.Enqueue(b.origin(), fsm.Enqueue{Drafts: []fsm.Draft{draft}}, []store.Payload{{}})
			for what, call := range map[string]store.Call{
				"an enqueue": enqueue,
				"a claim":    calls.Claim(b.origin(), fsm.Claim{Worker: b.id(), Asks: []fsm.Ask{{Topic: "mail", N: 1}}}),
			} {
				hit := p.Inject(test.fault)
				_, err := b.s.Decide(t.Context(), call)
				<-hit
				if !errors.Is(err, store.ErrUnknown) {
					t.Fatalf("%s: error %v, want one that is %q", what, err, store.ErrUnknown)
				}
				receipt, committed, err := b.s.Outcome(t.Context(), call.ID)
				if err != nil || committed != test.committed || committed != (len(receipt.Events) > 0) {
					t.Errorf("%s: committed %t with %d events, error %v; want %t", what, committed, len(receipt.Events), err, test.committed)
				}
				receipts, err := b.s.Decide(t.Context(), call)
				if err != nil {
					t.Fatal(err)
				}
				if again := receipts[0]; test.committed && (again.Err != nil || len(again.Events) != len(receipt.Events)) ||
					!test.committed && !errors.Is(again.Err, store.ErrVoid) {
					t.Errorf("%s: asked again it gave %d events and error %v", what, len(again.Events), again.Err)
				}
			}
		})
	}
}

func TestAConnectionLostBeforeAnythingWasCommittedIsNoError(t *testing.T) {
	p, b := proxied(t)
	hit := p.Inject(pgtest.Fault{From: pgtest.Backend, Match: pgtest.Says("begin"), Do: pgtest.CutBefore})
	if rows := b.claim(b.id(), "mail", 1); len(rows) != 1 {
		t.Errorf("%d messages were claimed, want 1", len(rows))
	}
	<-hit
}

// A client that stops between its round trips, with rows in hand, keeps others from them for no longer than the options say.
func TestAClaimerThatStopsDelaysOthersByTheBoundAtMost(t *testing.T) {
	dsn := pgtest.Database(t)
	p := pgtest.NewProxy(t, dsn)
	const bound = 500 * time.Millisecond
	stopped := &beds{t: t, s: openAt(t, p.DSN(), Options{IdleTimeout: bound})}
	other := &beds{t: t, s: openAt(t, dsn, Options{LockTimeout: 10 * time.Second})}
	other.configure("mail", 2)
	other.enqueue("mail", "", 3)
	stopped.claim(stopped.id(), "mail", 1) // from now on its second round trip begins with what it has changed of messages
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hit := p.Inject(pgtest.Fault{From: pgtest.Client, Match: pgtest.Says("with moved"), Do: pgtest.Stall})
	done := make(chan int, 1)
	call := calls.Claim(stopped.origin(), fsm.Claim{Worker: stopped.id(), Asks: []fsm.Ask{{Topic: "mail", N: 1}}})
	go func() {
		receipts, err := stopped.s.Decide(ctx, call)
		if err != nil {
			t.Error(err)
		}
		granted := 0
		for _, r := range receipts {
			granted += len(r.Events)
		}
		done <- granted
	}()
	<-hit
	begun := time.Now()
	other.configure("mail", 3) // it waits for those who claim from the topic
	if took := time.Since(begun); took < bound/2 || took > bound+5*time.Second {
		t.Errorf("another command took %s, the bound is %s", took, bound)
	}
	if n := len(other.claim(other.id(), "mail", 2)); n != 2 {
		t.Errorf("%d messages were claimed, want 2: what the stopped claimer had in hand is free", n)
	}
	p.Resume()
	if granted := <-done; granted != 0 {
		t.Errorf("the stopped claimer, which decides anew, was granted %d messages that another has", granted)
	}
}

func TestSecretsAreNeverTold(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, dsn := range []string{
		"postgres://u:" + secret + "@127.0.0.1:1/db", "host=127.0.0.1 port=1 user=u dbname=db password=" + secret,
		"postgres://u:" + secret + "@127.0.0.1:x/db", "postgres://u:" + secret + "%zz@127.0.0.1/db", "postgres://u:p " + secret + "@[/db",
		"host=127.0.0.1 port=x password=" + secret, "password=" + secret + " nonsense", "postgres://127.0.0.1:1/db?password=" + secret + "&sslmode=nonsense",
	} {
		s, err := Open(t.Context(), dsn, Options{})
		if err == nil {
			t.Fatalf("%s was opened", s)
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), secret[:7]) {
			t.Errorf("the error tells the password: %v", err)
		}
	}
	dsn := pgtest.Database(t)
	s := openAt(t, dsn, Options{})
	if password := s.config.Password; password != "" && strings.Contains(s.String(), password) {
		t.Errorf("the name of the store tells the password: %s", s)
	}
}

func TestWhatIsNoStoreOfThisVersionIsRefused(t *testing.T) {
	dsn := pgtest.Database(t)
	if _, err := Open(t.Context(), dsn, Options{NoMigrate: true}); !errors.As(err, new(*OlderError)) || !strings.Contains(err.Error(), "foundling migrate") {
		t.Errorf("an empty database: error %v", err)
	}
	h := newHand(t, openAt(t, dsn, Options{}))
	h.do("INSERT INTO @schema_versions (version_id, is_applied) VALUES (99, true)")
	if _, err := Open(t.Context(), dsn, Options{}); !errors.Is(err, store.ErrNewer) {
		t.Errorf("a newer schema: error %v", err)
	}
	h.do("CREATE SCHEMA others")
	h.do("CREATE TABLE others.things (id int)")
	if _, err := Open(t.Context(), dsn, Options{Schema: "others"}); !errors.Is(err, store.ErrForeign) {
		t.Errorf("a schema of somebody else: error %v", err)
	}
	if _, err := Open(t.Context(), dsn, Options{Schema: `x"; DROP`}); err == nil || !strings.Contains(err.Error(), "Schema") {
		t.Errorf("a schema that is no name: error %v", err)
	}
}

// Commits go on behind the end of a range, and what was known before is known there.
func TestCommitsGoFromOneRangeToTheNext(t *testing.T) {
	dsn := pgtest.Database(t)
	b := &beds{t: t, s: openAt(t, dsn, Options{})}
	far := &beds{t: t, s: openAt(t, dsn, Options{})}
	b.configure("mail", 0)
	ids := b.enqueue("mail", "", 2).Rows
	h := newHand(t, b.s)
	for range ahead + 2 {
		list := b.s.ranges.list
		h.do("SELECT setval('@blocks', $1)", b.s.ranges.current().upper-2)
		for range 4 {
			b.enqueue("mail", "", 1)
			far.enqueue("mail", "", 1)
		}
		if err := b.s.keepRanges(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last := list[len(list)-1]; b.s.ranges.current().lower == list[0].lower || last.upper == b.s.ranges.list[len(b.s.ranges.list)-1].upper {
			t.Fatalf("from ranges %v to %v", list, b.s.ranges.list)
		}
	}
	// A message that is known from an earlier range is not taken for new.
	worker := b.id()
	rows := b.claim(worker, "mail", 2)
	b.settle(worker, rows)
	again := fsm.Draft{ID: ids[0].Entity.ID, EnqueueMessage: fsm.EnqueueMessage{Topic: "mail", Payload: events.Facts{Commitment: events.Commitment([16]byte{}, nil)}}}
	call, _ := calls.Enqueue(b.origin(), fsm.Enqueue{Drafts: []fsm.Draft{again}}, []store.Payload{{}})
	if receipts, err := b.s.Decide(t.Context(), call); err != nil || receipts[0].Err == nil {
		t.Errorf("a message that has ended was made again: %v, error %v", receipts, err)
	}
	if n := len(read(t, b.s, "", store.Filter{Types: []events.Type{events.TypeMessageEnqueued}})); n != 2+8*(ahead+2) {
		t.Errorf("%d messages are in the log, want %d", n, 2+8*(ahead+2))
	}
}
