package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/internal/history"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
	"pgregory.net/rapid"
)

// Wherever the beginning of a busy log ends, at any of its commits, what is kept obeys the laws, and goes on to.
func TestVerifyIsCleanWhereverTheLogBegins(t *testing.T) {
	const steps = 80
	ends := func() []int { // how many events end with a commit
		var list []int
		for i, r := range logOf(t, busy(t, 31, steps).Store) {
			if n := len(list); n > 0 && list[n-1]+r.Commit.Count > i {
				continue
			}
			list = append(list, i)
		}
		return list
	}()
	if len(ends) < 30 {
		t.Fatalf("a history of %d commits tells too little", len(ends))
	}
	headless := 0
	for _, n := range ends[1:] {
		h := busy(t, 31, steps)
		for round := range 3 {
			if err := h.Prune(n, ""); err != nil {
				t.Fatal(err)
			}
			report := verify(t, h.Store, replay.Options{Payloads: true})
			if !report.Clean() || len(report.Unchecked) > 0 || report.Through == 0 {
				t.Fatalf("round %d, %d events pruned, through %d: unchecked %q, violations:\n%s", round, n, report.Through, report.Unchecked, texts(report))
			}
			list, err := h.Log(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if list[0].Version > 1 {
				headless++
			}
			if err := h.Busy(20); err != nil {
				t.Fatal(err)
			}
		}
	}
	if headless == 0 {
		t.Error("no log began with an event of something that had begun before")
	}
}

func TestVerifyIsCleanOnAPrunedStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history.New(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			if err := h.Busy(rapid.IntRange(0, 60).Draw(t, "steps")); err != nil {
				t.Fatal(err)
			}
			n := rapid.IntRange(1, 150).Draw(t, "events")
			for range rapid.IntRange(0, 3).Draw(t, "told") {
				if err := h.Tell(n); err != nil {
					t.Fatal(err)
				}
			}
			if rapid.IntRange(0, 2).Draw(t, "prune") == 0 {
				continue
			}
			if err := h.Prune(n, ""); err != nil {
				t.Fatal(err)
			}
		}
		report, err := replay.Verify(context.Background(), h.Store, replay.Options{Payloads: true})
		if err != nil {
			t.Fatal(err)
		}
		if !report.Clean() || len(report.Unchecked) > 0 {
			t.Fatalf("unchecked %q, violations:\n%s", report.Unchecked, texts(report))
		}
		for row, err := range h.Store.Rows(context.Background(), store.RowFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			v, err := replay.Fold(context.Background(), h.Store, row.Entity)
			if err != nil {
				t.Fatal(err)
			}
			if version, state := v.At(); version != row.Version || state != row.State {
				t.Errorf("%s is %s at version %d, the log leads to %s at %d", row.Entity, row.State, row.Version, state, version)
			}
		}
	})
}

// pruned is a busy store whose log has lost its first n events, with some steps behind that.
func pruned(t *testing.T, seed uint64, n int) *history.History {
	t.Helper()
	h := busy(t, seed, 250)
	if err := h.Prune(n, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.Busy(50); err != nil {
		t.Fatal(err)
	}
	if report := verify(t, h.Store, replay.Options{}); !report.Clean() {
		t.Fatalf("violations:\n%s", texts(report))
	}
	return h
}

// An event that is lost behind what was let go is found, though its commit does not say that it had one more: but for what was the first that was
// kept of something, since whether there was one more nobody can tell.
func TestVerifyFindsEveryLostEventOfAPrunedLog(t *testing.T) {
	h := pruned(t, 33, 130)
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := slices.IndexFunc(list, func(r events.Recorded) bool { return r.Event.Type() == events.TypeLogPruned })
	if told < 30 || told > len(list)-30 {
		t.Fatalf("event %d of %d tells of the pruning", told, len(list))
	}
	first := map[events.Entity]bool{}
	excused := 0
	for i, lost := range list {
		if lost.Version == 0 || lost.Entity.Kind == events.KindSweep {
			continue // it leaves nothing
		}
		excuse := i < told && !first[lost.Entity] && !lost.Event.Type().Snapshots()
		first[lost.Entity] = true
		if excuse {
			excused++
		}
		report := verify(t, damaged{Store: h.Store, log: neverWritten(i)}, replay.Options{})
		if report.Clean() && !excuse {
			t.Errorf("without %s: nothing found", (*events.Names)(nil).Line(lost))
		}
	}
	if excused > len(list)/4 {
		t.Errorf("%d of %d events were excused", excused, len(list))
	}
}

// neverWritten is the log without the event at an index, of which its commit knows nothing either.
func neverWritten(i int) func([]events.Recorded) []events.Recorded {
	return func(list []events.Recorded) []events.Recorded {
		commit := *list[i].Commit
		commit.Count--
		for k := range list {
			if list[k].Commit.ID == commit.ID {
				list[k].Commit = &commit
			}
		}
		return slices.Delete(list, i, i+1)
	}
}

// A snapshot that is not what the entity was is found: by what was known, by its row, or by what follows it.
func TestVerifyFindsEveryAlteredSnapshot(t *testing.T) {
	altered := map[events.Type]int{}
	for seed := range uint64(4) {
		h := pruned(t, 40+seed, 150)
		list, err := h.Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		alterSnapshots(t, h, list, altered)
	}
	for _, typ := range []events.Type{events.TypeMessageSnapshotted, events.TypeLockSnapshotted, events.TypeWorkerSnapshotted, events.TypeTopicSnapshotted} {
		if altered[typ] == 0 {
			t.Errorf("no %s was altered", typ)
		}
	}
}

func alterSnapshots(t *testing.T, h *history.History, list []events.Recorded, altered map[events.Type]int) {
	t.Helper()
	kept := map[events.Entity]bool{} // of what has ended since nobody can tell what it was
	for _, row := range rowsOf(t, h.Store) {
		kept[row.Entity] = true
	}
	for i, r := range list {
		snapshot, ok := events.SnapshotOf(r.Event)
		if !ok {
			continue
		}
		for _, change := range alterations(t, r.Entity, snapshot.State) {
			wrong := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
				list[i].Event = change
				return list
			}}
			altered[r.Event.Type()]++
			if report := verify(t, wrong, replay.Options{}); report.Clean() && kept[r.Entity] && !setAgain(list[i+1:], r.Entity) {
				t.Errorf("%s told as %s: nothing found", (*events.Names)(nil).Line(r), fmt.Sprint(change))
			}
		}
	}
}

// setAgain reports whether somebody sets a topic or a lock anew: what was before is then no more than what the snapshot said.
func setAgain(list []events.Recorded, entity events.Entity) bool {
	return slices.ContainsFunc(list, func(r events.Recorded) bool {
		return r.Entity == entity && (r.Event.Type() == events.TypeTopicConfigured || r.Event.Type() == events.TypeLockConfigured)
	})
}

// alterations are snapshots of an entity that tell something else than the given fields.
func alterations(t *testing.T, entity events.Entity, fields []byte) []events.Event {
	t.Helper()
	v, err := fsm.ReadValue(entity, 1, fields)
	if err != nil {
		t.Fatal(err)
	}
	tell := func(v fsm.Value) events.Snapshot { return events.Snapshot{State: events.AppendFields(nil, v)} }
	switch v := v.(type) {
	case *fsm.Message:
		attempts, topic := *v, *v
		attempts.Attempts++
		topic.Topic = "elsewhere"
		return []events.Event{&events.MessageSnapshotted{Snapshot: tell(&attempts)}, &events.MessageSnapshotted{Snapshot: tell(&topic)}}
	case *fsm.Topic:
		v.Limit++
		return []events.Event{&events.TopicSnapshotted{Snapshot: tell(v)}}
	case *fsm.Worker:
		v.Host += "x"
		return []events.Event{&events.WorkerSnapshotted{Snapshot: tell(v)}}
	case *fsm.Lock:
		permits := *v
		permits.Permits++
		nobody := events.PermitOut{Token: 1 << 40, Worker: events.ID{15: 7}, AcquiredAt: time.Unix(1, 0)}
		return []events.Event{
			&events.LockSnapshotted{Snapshot: tell(&permits), Out: make([]events.PermitOut, permits.Held)},
			&events.LockSnapshotted{Snapshot: tell(v), Out: slices.Repeat([]events.PermitOut{nobody}, max(1, v.Held))},
		}
	}
	return nil
}

// Rows that differ, are missing or are too many are found behind a prune as anywhere.
func TestVerifyFindsAlteredRowsOfAPrunedLog(t *testing.T) {
	h := pruned(t, 34, 150)
	for _, row := range rowsOf(t, h.Store) {
		for name, alter := range map[string]func(store.Row) []store.Row{
			"fields":  func(r store.Row) []store.Row { r.Fields = bytes.ToUpper(r.Fields); return []store.Row{r} },
			"version": func(r store.Row) []store.Row { r.Version++; return []store.Row{r} },
			"missing": func(r store.Row) []store.Row { return nil },
			"twice":   func(r store.Row) []store.Row { return []store.Row{r, r} },
		} {
			wrong := damaged{Store: h.Store, rows: func(rows []store.Row) (list []store.Row) {
				for _, r := range rows {
					if r.Entity == row.Entity {
						list = append(list, alter(r)...)
					} else {
						list = append(list, r)
					}
				}
				return list
			}}
			if report := verify(t, wrong, replay.Options{}); report.Clean() {
				t.Errorf("%s: %s: nothing found", row.Entity, name)
			}
		}
	}
}

// It says what is wrong with what is told of a lock.
func TestVerifyFindsPermitsThatAreToldOtherwise(t *testing.T) {
	h := history.New(func(n int) int { return min(1, n-1) })
	var tokens []events.Token
	if err := h.Permits("press", 3); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		permit, err := h.Acquire(events.ID{15: 9}, "press", 0)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, permit.Token)
	}
	if err := h.Busy(1); err != nil { // time passes
		t.Fatal(err)
	}
	if err := h.Tell(2); err != nil {
		t.Fatal(err)
	}
	for range 2 { // first it tells what is known, then what is not
		list, err := h.Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(list, func(r events.Recorded) bool { return r.Event.Type() == events.TypeLockSnapshotted })
		if at < 0 {
			t.Fatal("the lock told nothing")
		}
		stranger := "it tells permit 77, which is not out"
		if !begun(list[:at], events.LockEntity("press")) { // it may be one that was taken in what went, but another one is out
			stranger = fmt.Sprintf("it does not tell permit %d, which is out", tokens[1])
		}
		for want, alter := range map[string]func(*events.LockSnapshotted){
			"tells of 1 permits that are out, of the lock 2 are":                     func(e *events.LockSnapshotted) { e.Out = e.Out[:1] },
			fmt.Sprintf("it tells permit %d behind permit %d", tokens[0], tokens[1]): func(e *events.LockSnapshotted) { slices.Reverse(e.Out) },
			stranger:                 func(e *events.LockSnapshotted) { e.Out[1].Token = 77 },
			"it was taken otherwise": func(e *events.LockSnapshotted) { e.Out[1].Worker = events.ID{15: 8} },
		} {
			wrong := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
				e := *list[at].Event.(*events.LockSnapshotted)
				e.Out = slices.Clone(e.Out)
				alter(&e)
				list[at].Event = &e
				return list
			}}
			found(t, verify(t, wrong, replay.Options{}), replay.Violation{
				Entity: events.LockEntity("press"), Version: list[at].Version, Position: list[at].Position, Detail: want,
			})
		}
		unbegun := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
			return slices.DeleteFunc(list, func(r events.Recorded) bool { return r.Entity == list[at].Entity && r.Position < list[at].Position })
		}}
		if report := verify(t, unbegun, replay.Options{}); report.Clean() != (report.Through > 0) {
			t.Errorf("without what the lock did before it told its state, and %d events gone: %q", report.Through, texts(report))
		}
		if err := h.Prune(2, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// Of what lost its beginning, the order of its events and that it tells its state are checked.
func TestVerifyFindsWhatNeverToldItsState(t *testing.T) {
	gaps, untold := 0, 0
	for seed := range uint64(5) {
		h := pruned(t, 50+seed, 120)
		list, err := h.Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told := slices.IndexFunc(list, func(r events.Recorded) bool { return r.Event.Type() == events.TypeLogPruned })
		versions := map[events.Entity]events.Recorded{} // the last of each that was headless so far
		for i, r := range list[:told] {
			last, headless := versions[r.Entity]
			want := replay.Violation{Entity: r.Entity}
			switch next := slices.IndexFunc(list[i+1:], func(n events.Recorded) bool { return n.Entity == r.Entity && n.Version > 0 }); {
			case r.Version == 0 || r.Version == 1 || r.Entity.Kind == events.KindLock:
			case headless && r.Event.Type().Snapshots():
				untold++
				want.Version, want.Position, want.Detail = last.Version, last.Position, "neither its beginning nor a snapshot is kept"
			case headless && next >= 0 && i+1+next < told && r.From == r.To:
				gaps++
				want.Version, want.Position = r.Version+1, list[i+1+next].Position
				want.Detail = fmt.Sprintf("version %d follows version %d", r.Version+1, last.Version)
			}
			if want.Detail != "" {
				found(t, verify(t, damaged{Store: h.Store, log: neverWritten(i)}, replay.Options{}), want)
			}
			if headless && r.Version > 0 {
				moved := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
					list[i].From = events.Absent
					return list
				}}
				found(t, verify(t, moved, replay.Options{}), replay.Violation{
					Entity: r.Entity, Version: r.Version, Position: r.Position, Detail: "from none to " + r.To.String() + " is recorded",
				})
			}
			if r.Version > 1 && !r.Event.Type().Snapshots() && !begun(list[:i], r.Entity) {
				versions[r.Entity] = r
			} else {
				delete(versions, r.Entity)
			}
		}
	}
	if gaps == 0 || untold == 0 {
		t.Errorf("%d gaps and %d untold states were tried", gaps, untold)
	}
}

// begun reports whether an entity has begun, or told its state, in a log.
func begun(list []events.Recorded, entity events.Entity) bool {
	return slices.ContainsFunc(list, func(r events.Recorded) bool {
		return r.Entity == entity && (r.Version == 1 || r.Event.Type().Snapshots())
	})
}

// What a log.pruned says is compared with what is there.
func TestVerifyFindsAWrongTaleOfWhatWentAway(t *testing.T) {
	h := pruned(t, 35, 60)
	if err := h.Prune(40, ""); err != nil {
		t.Fatal(err)
	}
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := len(list) - 1
	for name, c := range map[string]struct {
		alter func(*events.LogPruned)
		want  string
	}{
		"ahead":   {func(e *events.LogPruned) { e.Through = list[last].Position }, "behind itself"},
		"through": {func(e *events.LogPruned) { e.Through = list[0].Position }, fmt.Sprintf("an event at position %d is kept", list[0].Position)},
		"back":    {func(e *events.LogPruned) { e.Through = 1 }, "before it were"},
		"total":   {func(e *events.LogPruned) { e.Total++ }, "before it were"},
		"nothing": {func(e *events.LogPruned) { e.Events = 0 }, "0 events through"},
	} {
		t.Run(name, func(t *testing.T) {
			report := verify(t, damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
				e := *list[last].Event.(*events.LogPruned)
				c.alter(&e)
				list[last].Event = &e
				return list
			}}, replay.Options{})
			found(t, report, replay.Violation{Entity: events.LogEntity(), Version: list[last].Version, Position: list[last].Position, Detail: c.want})
		})
	}
	silent := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
		return slices.DeleteFunc(list, func(r events.Recorded) bool { return r.Entity == events.LogEntity() })
	}}
	found(t, verify(t, silent, replay.Options{}), replay.Violation{Entity: events.LogEntity(), Detail: "nothing says so"})
	if report := verify(t, damaged{Store: h.Store, log: neverWritten(last)}, replay.Options{}); report.Clean() {
		t.Error("without the newest log.pruned nothing is found")
	}
}

// A message that has ended may say that its contents were erased; one that has not may not.
func TestVerifyFindsAnErasureOfWhatIsOpen(t *testing.T) {
	h := busy(t, 36, 200)
	list := logOf(t, h.Store)
	open := 0
	for i, r := range list {
		if _, ok := r.Event.(*events.MessageClaimed); !ok || r.Commit.Count > 1 {
			continue
		}
		open++
		erased := damaged{Store: h.Store, log: func(list []events.Recorded) []events.Recorded {
			e := list[i]
			e.Transition = events.Transition{Event: &events.MessageErased{By: "ann"}, From: r.To, To: r.To}
			commit := *e.Commit
			e.Commit = &commit
			commit.ID = events.ID{1}
			return slices.Insert(list, i+1, e)
		}}
		found(t, verify(t, erased, replay.Options{}), replay.Violation{
			Entity: r.Entity, Position: r.Position, Detail: "message.erased is recorded of what was running",
		})
	}
	if open == 0 {
		t.Fatal("no claim was alone in its commit")
	}
}

// A log that is pruned while it is read is read again.
func TestVerifyBesideAPruning(t *testing.T) {
	for seed := range uint64(10) {
		h := busy(t, seed, 200)
		pages := 0
		live := pruning{moving{h.Store, func(store.RowFilter) error { return h.Busy(10) }, func() error { return h.Busy(10) }}, func(n int) error {
			if pages++; pages == 3 || pages == 9 {
				return h.Prune(n, "")
			}
			return nil
		}}
		report := verify(t, live, replay.Options{})
		if !report.Clean() {
			t.Errorf("seed %d: unchecked %q, violations:\n%s", seed, report.Unchecked, texts(report))
		}
	}
}

// A lock that is free when its newest event goes begins again, also for whoever had read that event before.
func TestVerifyOfALockThatBeginsAgain(t *testing.T) {
	h := history.New(func(n int) int { return min(1, n-1) })
	worker := events.ID{15: 9}
	use := func() {
		permit, err := h.Acquire(worker, "press", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Unlock(worker, permit.PermitKey); err != nil {
			t.Fatal(err)
		}
	}
	use()
	if err := h.Busy(1); err != nil { // time passes
		t.Fatal(err)
	}
	whole := logOf(t, h.Store)
	if err := h.Prune(3, ""); err != nil {
		t.Fatal(err)
	}
	use()
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if r.Position > int64(len(whole)) {
			whole = append(whole, r)
		}
	}
	if last := whole[len(whole)-1]; last.Entity != events.LockEntity("press") || last.Version != 2 {
		t.Fatalf("the lock has not begun again: %s", (*events.Names)(nil).Line(last))
	}
	if report := verify(t, tape{h.Store, whole}, replay.Options{}); !report.Clean() {
		t.Errorf("violations:\n%s", texts(report))
	}
}

// tape is a store whose log was read before its beginning went.
type tape struct {
	store.Store
	list []events.Recorded
}

// Read implements store.Store.
func (s tape) Read(_ context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for _, r := range s.list {
			if r.Position <= position(after) || f.Entity != (events.Entity{}) && r.Entity != f.Entity {
				continue
			}
			if f.Limit--; !yield(r, nil) || f.Limit == 0 {
				return
			}
		}
	}
}

// A sweep acted on proof, and was refused the rest; then the first of the two went. It tells nothing, since nobody keeps it.
func TestVerifyOfASweepWithoutItsFirstEvent(t *testing.T) {
	h := busy(t, 38, 30)
	sweep, decider := h.ID(), h.ID()
	finished := &events.SweepFinished{Decider: decider, Requeued: 1}
	refused := &events.SweepRefused{Decider: decider, Reason: events.ReasonLivenessEmpty}
	if err := h.Record(sweep, finished); err != nil {
		t.Fatal(err)
	}
	n := len(logOf(t, h.Store))
	if err := h.Busy(3); err != nil {
		t.Fatal(err)
	}
	if err := h.Record(sweep, refused); err != nil {
		t.Fatal(err)
	}
	if err := h.Busy(3); err != nil {
		t.Fatal(err)
	}
	if err := h.Prune(n, ""); err != nil {
		t.Fatal(err)
	}
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list, func(r events.Recorded) bool { return r.Entity == events.SweepEntity(sweep) && r.Version == 2 }) {
		t.Fatal("its second event is not there")
	}
	if report := verify(t, h.Store, replay.Options{}); !report.Clean() {
		t.Errorf("violations:\n%s", texts(report))
	}
}

// pruning is a moving store that may be pruned whenever its log is read.
type pruning struct {
	moving
	prune func(n int) error
}

// First implements store.Pruner.
func (p pruning) First(ctx context.Context) (store.Cursor, error) { return store.Oldest(ctx, p.Store) }

// Read implements store.Store.
func (p pruning) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		if err := p.prune(60); err != nil {
			yield(events.Recorded{}, err)
			return
		}
		p.moving.Read(ctx, after, f)(yield)
	}
}

// What has no beginning any more is what it tells of itself, or its newest event says.
func TestFoldOfWhatHasNoBeginning(t *testing.T) {
	h := busy(t, 37, 300)
	before := logOf(t, h.Store)
	if err := h.Prune(len(before)/2, ""); err != nil {
		t.Fatal(err)
	}
	list, err := h.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	newest := map[events.Entity]events.Recorded{}
	for _, r := range list {
		if r.Version > 0 {
			newest[r.Entity] = r
		}
	}
	for entity, r := range newest {
		v, err := replay.Fold(t.Context(), h.Store, entity)
		if err != nil {
			t.Errorf("%s: %v", entity, err)
			continue
		}
		if version, state := v.At(); version != r.Version || state != r.To {
			t.Errorf("%s is %s at version %d, its newest event says %s at %d", entity, state, version, r.To, r.Version)
		}
	}
}
