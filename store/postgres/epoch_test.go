package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
)

// epochsOf is how many epochs the log has had.
func epochsOf(t *testing.T, s *Store) int {
	t.Helper()
	if err := s.loadEpochs(t.Context()); err != nil {
		t.Fatal(err)
	}
	return len(s.epochs.known())
}

// refusedAhead ends the test unless a cursor is refused wherever one is taken, and the error names a cursor that is not.
func refusedAhead(t *testing.T, s *Store, cursor store.Cursor) {
	t.Helper()
	for _, f := range []store.Filter{{}, {Entity: events.TopicEntity("mail")}} {
		list, err := s.all(t.Context(), cursor, f)
		if !errors.Is(err, store.ErrAhead) || len(list) > 0 {
			t.Errorf("read behind %s: %d events, error %v, want ErrAhead", cursor, len(list), err)
		}
	}
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := &beds{t: t, s: s}
	call, _ := calls.Prune(b.origin(), fsm.Prune{Before: now, Events: 10, Rows: 10, Decider: b.id()}, calls.Known{Now: now, Upto: cursor})
	if receipts, err := s.Decide(t.Context(), call); err != nil || !errors.Is(receipts[0].Err, store.ErrAhead) {
		t.Errorf("prune up to %s: %+v, error %v, want ErrAhead", cursor, receipts, err)
	}
}

// behindAll reads behind each of the events, which must give those that follow it.
func behindAll(t *testing.T, s *Store, log []events.Recorded, cursors []store.Cursor) {
	t.Helper()
	now := read(t, s, "", store.Filter{})
	for i, cursor := range cursors {
		if got, want := places(read(t, s, cursor, store.Filter{})), places(now[i+1:]); !slices.Equal(got, want) {
			t.Errorf("behind event %d of %d at %s: %v, want %v", i, len(log), cursor, got, want)
		}
		if again := s.After(now[i]); again != cursor {
			t.Errorf("the cursor behind event %d was %s and is %s", i, cursor, again)
		}
	}
}

func cursorsOf(s *Store, log []events.Recorded) (list []store.Cursor) {
	for _, r := range log {
		list = append(list, s.After(r))
	}
	return list
}

func TestCursorsOutliveTheServersRestarts(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	b := &beds{t: t, s: openAt(t, server.DSN(), Options{})}
	var log []events.Recorded
	var cursors []store.Cursor
	for i := range 3 {
		b.configure("mail", i+1)
		b.enqueue("mail", "", 2)
		if i == 0 {
			b.enqueue("mail", "door", 1)
		}
		all := read(t, b.s, "", store.Filter{})
		cursors = append(cursors, cursorsOf(b.s, all[len(log):])...)
		log = all
		if i%2 == 0 {
			server.Kill9()
		} else {
			server.Stop()
		}
		server.Start()
	}
	behindAll(t, b.s, log, cursors)
	b.enqueue("mail", "", 1)
	behindAll(t, b.s, log, cursors)
	other := openAt(t, server.DSN(), Options{})
	behindAll(t, other, log, cursors)
	if n := epochsOf(t, other); n != 4 {
		t.Errorf("%d epochs, want one more for each of 3 starts", n)
	}
	head, err := other.Head(t.Context())
	if mine, wrong := b.s.Head(t.Context()); err != nil || wrong != nil || head != mine {
		t.Errorf("heads %q and %q, %v, %v", head, mine, err, wrong)
	}
}

// A backup is restored over a server, from the files, and time goes on from there. Somebody comes with a cursor from what was lost.
func TestACursorOfALostFutureIsRefusedWhateverTheLogHasComeToSince(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	var log bytes.Buffer
	b := &beds{t: t, s: openAt(t, server.DSN(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})}
	b.configure("mail", 0)
	b.enqueue("mail", "", 2)
	server.Save()
	kept := read(t, b.s, "", store.Filter{})
	shared := cursorsOf(b.s, kept)
	var lost []store.Cursor
	for range 5 {
		b.enqueue("mail", "door", 1)
	}
	future := read(t, b.s, shared[len(shared)-1], store.Filter{})
	lost = cursorsOf(b.s, future)
	token := b.claim(b.id(), "mail", 9)[2].LockToken
	if token == 0 {
		t.Fatal("no claim has taken the lock")
	}
	server.Kill9()
	server.Restore()

	refusedAhead(t, b.s, lost[0])
	for i := range 40 { // in the same process: it comes to stand behind all that was lost
		b.configure(fmt.Sprint("other", i), 1)
	}
	for _, s := range []*Store{b.s, openAt(t, server.DSN(), Options{})} {
		for _, cursor := range lost {
			refusedAhead(t, s, cursor)
		}
		behindAll(t, s, kept, shared)
	}
	// Who has read them before, and asks where it stands only now, is not told that it has seen what came instead.
	for _, r := range future {
		refusedAhead(t, b.s, b.s.After(r))
	}
	now := read(t, b.s, shared[len(shared)-1], store.Filter{})
	behindAll(t, b.s, append(slices.Clone(kept), now...), append(slices.Clone(shared), cursorsOf(b.s, now)...))
	if !strings.Contains(log.String(), "cursors beyond its end are refused") {
		t.Errorf("the log says %q", log.String())
	}
	b.enqueue("mail", "door", 1)
	if again := b.claim(b.id(), "mail", 9); len(again) != 3 || again[2].LockToken <= token {
		t.Errorf("claims %+v, want a token above %d, which was given in what was lost", again, token)
	}
}

// The page that is being read was the last of what is not lost.
func TestAReadThatABackupOvertakesEnds(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	b := &beds{t: t, s: openAt(t, server.DSN(), Options{})}
	b.configure("mail", 0)
	b.enqueue("mail", "", pageEvents)
	server.Save()
	b.enqueue("mail", "", pageEvents)
	b.enqueue("mail", "", 1)
	for _, c := range []struct {
		what    string
		passed  int // events that are read before
		wanted  error
		instead int // that are read behind them
	}{
		{"within what is kept", 10, nil, pageEvents + 1 - 10 + 40},
		{"beyond it", pageEvents + 20, store.ErrAhead, 0},
	} {
		n := 0
		var failed error
		for _, err := range b.s.Read(t.Context(), "", store.Filter{}) {
			if err != nil {
				failed = err
				break
			}
			if n++; n == c.passed {
				server.Kill9()
				server.Restore()
				for i := range 40 {
					b.configure("mail", i+1)
				}
			}
		}
		if !errors.Is(failed, c.wanted) || c.wanted == nil && n != c.passed+c.instead {
			t.Errorf("%s: %d events and error %v, want %d and %v", c.what, n, failed, c.passed+c.instead, c.wanted)
		}
		if c.wanted == nil { // what was lost comes again
			b.enqueue("mail", "", pageEvents)
			b.enqueue("mail", "", 1)
		}
	}
}

// A dump is restored somewhere else, without its sequences or with them.
func TestARestoredDumpGoesOnBehindItsNewestEvent(t *testing.T) {
	for _, spoil := range []string{"", "SELECT setval('@blocks', 1, false), setval('@fences', 1, false)"} {
		from, to := pgtest.Database(t), pgtest.Database(t)
		b := &beds{t: t, s: openAt(t, from, Options{})}
		b.configure("mail", 0)
		b.enqueue("mail", "door", 2)
		worker := b.id()
		claims := b.claim(worker, "mail", 2)
		kept := read(t, b.s, "", store.Filter{})
		pgtest.Dump(t, from, to)
		for range 5 {
			b.enqueue("mail", "", 1)
		}
		lost := cursorsOf(b.s, read(t, b.s, b.s.After(kept[len(kept)-1]), store.Filter{}))
		shared := cursorsOf(b.s, kept)
		if spoil != "" {
			config, err := configure(to, Options{})
			if err != nil {
				t.Fatal(err)
			}
			newHand(t, &Store{config: config.ConnConfig, prefix: b.s.prefix}).do(spoil)
		}
		restored := &beds{t: t, s: openAt(t, to, Options{})}
		refusedAhead(t, restored.s, lost[0])
		restored.settle(worker, claims)
		for range 40 {
			restored.enqueue("mail", "door", 1)
		}
		for _, cursor := range lost {
			refusedAhead(t, restored.s, cursor)
		}
		behindAll(t, restored.s, kept, shared)
		if again := restored.claim(worker, "mail", 1); len(again) != 1 || again[0].LockToken <= claims[0].LockToken {
			t.Errorf("claims %+v, want one with a token above %d", again, claims[0].LockToken)
		}
	}
}

func TestEventsThatWereReadBeforeAnEpochAreNotThoseThatCameInstead(t *testing.T) {
	s := &Store{}
	at := time.Unix(1000, 0)
	s.epochs.learn([]epoch{{}})
	s.epochs.gave(150)
	list := []epoch{{}, {id: "0000000000000001", begin: 100, at: at}, {id: "0000000000000002", begin: 120, at: at.Add(time.Hour)}}
	s.epochs.learn(slices.Clone(list))
	for _, c := range []struct {
		position int64
		decided  time.Time
		epoch    string
	}{
		{100, at.Add(-time.Minute), ""},
		{101, at.Add(-time.Minute), ""},
		{101, at, "0000000000000001"},
		{121, at, "0000000000000001"},
		{121, at.Add(time.Hour), "0000000000000002"},
		{151, at.Add(-time.Minute), "0000000000000002"}, // nobody has read that before
		{121, time.Time{}, "0000000000000002"},
	} {
		if got := s.cursorIn(s.epochs.known(), c.position, c.decided).Epoch(); got != c.epoch {
			t.Errorf("position %d, decided %s: epoch %q, want %q", c.position, c.decided, got, c.epoch)
		}
	}
}

// A standby answers reads up to where the log was found to be final, and takes no writes; once it is promoted it takes them, by whoever had it open.
func TestAStandbyReadsAndIsPromoted(t *testing.T) {
	server := pgtest.NewServer(t, pgtest.Options{})
	b := &beds{t: t, s: openAt(t, server.DSN(), Options{})}
	b.configure("mail", 0)
	b.enqueue("mail", "", 3)
	standby := server.Standby(t)
	s := openAt(t, standby.DSN(), Options{})
	all := read(t, b.s, "", store.Filter{})
	b.s.powers.seals.done.Wait()
	standby.CatchUp()
	if got := places(read(t, s, "", store.Filter{})); !slices.Equal(got, places(all)) {
		t.Errorf("the standby reads %v, want %v", got, places(all))
	}
	if head, err := s.Head(t.Context()); err != nil || head != b.s.After(all[len(all)-1]) {
		t.Errorf("the standby's head: %s, %v", head, err)
	}
	stuck := newHand(t, b.s)
	stuck.begin()
	stuck.draw() // what comes behind it is not final
	b.s.options.ReadPatience = time.Millisecond
	b.enqueue("mail", "", 1)
	read(t, b.s, "", store.Filter{})
	b.s.powers.seals.done.Wait()
	standby.CatchUp()
	if got := places(read(t, s, "", store.Filter{})); !slices.Equal(got, places(all)) {
		t.Errorf("the standby reads %v while a writer before it may still commit, want %v", got, places(all))
	}
	stuck.do("ROLLBACK")

	on := &beds{t: t, s: s}
	for what, call := range map[string]store.Call{
		"an operation": calls.OperateTopic(on.origin(), fsm.OperateTopic{Topic: "mail", Command: fsm.ConfigureTopic{Limit: 3}}),
		"a claim":      calls.Claim(on.origin(), fsm.Claim{Worker: on.id(), Asks: []fsm.Ask{{Topic: "mail", N: 1}}}),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patienceOfTests)
		_, err := s.Decide(ctx, call)
		cancel()
		if err == nil || errors.Is(err, store.ErrUnknown) || !strings.Contains(err.Error(), "takes no writes") {
			t.Errorf("%s on a standby: error %v", what, err)
		}
	}
	if _, err := s.Beat(t.Context(), store.Beat{Worker: on.id(), First: true, Interval: time.Second, FenceAfter: time.Minute}); err == nil ||
		!strings.Contains(err.Error(), "takes no writes") {
		t.Errorf("a heartbeat on a standby: error %v", err)
	}

	standby.Stop()
	cursors := cursorsOf(b.s, b.enqueue("mail", "", 5).Events)
	server.Kill9()
	standby.Start()
	standby.Promote()
	refusedAhead(t, s, cursors[len(cursors)-1])
	for range 40 {
		on.enqueue("mail", "", 1)
	}
	for _, cursor := range cursors {
		refusedAhead(t, s, cursor)
	}
	_, err := s.all(t.Context(), cursors[3], store.Filter{})
	if text := err.Error(); !strings.Contains(text, string(store.CursorAt(s.id, s.epochs.known()[1].begin))) {
		t.Errorf("the error names no cursor to go on from: %s", text)
	}
	behindAll(t, s, all, cursorsOf(b.s, all))
	if list := s.epochs.known(); len(list) != 2 {
		t.Errorf("epochs %+v, want a second", list)
	}
}
