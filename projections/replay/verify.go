package replay

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// looks is how often Verify waits for the store to stand still for as long as it takes to read the topics.
const looks = 10

// told is after how many events progress is told.
const told = 1000

// attempts is how often Verify reads a log that is pruned meanwhile.
const attempts = 3

// Verify checks that the log obeys the laws and that it equals the stored state, on a store that may be at work meanwhile.
//
// Of the log: positions rise, commits are whole, every entity's versions follow each other by transitions of its table, what has ended
// does not begin again, a key is that of one open message, a claim's token and attempt are the next, it fits into its topic's limit and
// records the true running count, and only the open claim is ended. A permit's token is above those of its lock before, no more are out
// than the lock has, none ends twice, a claim has taken its message's permit in its own commit, and it comes back when the claim's worker
// ends the claim. Who was blocked found the lock taken, who was unblocked found it free, and at the end nobody is blocked by a free lock
// while nobody of the topic was sent to try.
//
// Of the state: every row is what its events lead to, column by column; every open entity has one and nothing else has; the permits that
// are kept are those that are out; every running count is the number of open claims that count.
//
// What happens between the reading of the log and that of a row is settled by the entity's own events up to the row's version, and of a
// permit by its lock's events since. Who waits for what is judged by the log alone. The running counts have no version: they are compared
// while nothing moves, else the report says that they were not.
//
// A log of which the beginning was let go begins with what is told once more of what was open there: from then on all of this is checked of it, and
// before that what can be; see PrunedOutOfReach. What is told of an entity that is known must be so, and everything that is kept must have been told
// by the newest log.pruned. Where the log is pruned while it is read, what seems wrong is looked at again.
//
// Of what is staged (see store.Stager): each can be read, and its payload is what it says of it.
//
// It keeps the open entities and permits in memory, and 8 MiB for those that have ended and for free locks, and holds nothing in the
// store. What it can never check is OutOfReach. That an event is missing which was alone in its commit and left nothing but itself (a
// refusal, a sweep) only the engine can notice, by a gap in its positions.
//
// Damage is a violation in the report. An error says that the store could not be read to its end; the report is then what was found
// until there.
func Verify(ctx context.Context, s store.Store, o Options) (Report, error) {
	if err := o.validate(); err != nil {
		return Report{}, fmt.Errorf("verify: %w", err)
	}
	for try := 1; ; try++ {
		v := newVerifier(s, o)
		err := v.verify(ctx)
		if v.damage(err) {
			v.stop("everything behind the damage: the rest of the log, and rows")
			err = nil
		}
		moved, lost := v.overtaken(ctx, err)
		switch {
		case moved && try < attempts:
			continue
		case moved:
			v.report.Unchecked = append(v.report.Unchecked,
				fmt.Sprintf("what the log had lost by then: it was pruned during each of %d readings, and a violation may come from that", attempts))
		}
		if err = errors.Join(err, lost); err != nil {
			return v.report, fmt.Errorf("verify: %w", err)
		}
		return v.report, nil
	}
}

// overtaken reports whether the log was pruned while it was read, so that what was found may come from that.
func (v *verifier) overtaken(ctx context.Context, err error) (bool, error) {
	if errors.Is(err, store.ErrPruned) {
		return true, nil
	}
	if err != nil || v.report.Clean() {
		return false, nil
	}
	first, err := store.Oldest(ctx, v.store)
	return first != v.first, err
}

// verifier is one verification on its way.
type verifier struct {
	store   store.Store
	options Options
	report  Report
	over    bool // nothing more is to be checked
	beginning

	last        int64 // the position of the last event that was checked
	seen        int64 // up to where earlier rounds have read the log
	held        map[events.Entity]*held
	ended       ended                      // what was held
	resting     resting                    // what was held and will go on
	permits     map[store.PermitKey]*out   // those that are out
	counted     map[string]int             // open claims that count, by topic
	keys        map[store.Key]events.ID    // who has a key, as long as it is open
	commits     map[store.CommitID]partial // those of which not all events have come yet
	broken      map[events.Entity]bool     // a violation was found, and what follows it means nothing: a fault is told once
	doubtful    map[string]bool            // topics whose count means nothing, since a message of theirs is broken
	allDoubtful bool                       // one is broken whose topic is not known
}

// held is an entity that has a row, according to the log.
type held struct {
	value    fsm.Value
	position int64 // of the last event that moved it
	rowed    bool  // its row was seen

	token events.Token // of a lock: the newest of its permits
}

// partial is a commit of which events are still to come.
type partial struct {
	left int
	last Violation // what to say of it if they do not
}

func newVerifier(s store.Store, o Options) *verifier {
	if o.Violations == 0 {
		o.Violations = defaultViolations
	}
	return &verifier{
		store: s, options: o, beginning: newBeginning(), seen: math.MinInt64,
		held: map[events.Entity]*held{}, ended: newEnded(), resting: newResting(restSets), permits: map[store.PermitKey]*out{},
		counted: map[string]int{}, keys: map[store.Key]events.ID{}, commits: map[store.CommitID]partial{},
		broken: map[events.Entity]bool{}, doubtful: map[string]bool{},
	}
}

func (v *verifier) verify(ctx context.Context) error {
	if err := v.locate(ctx); err != nil {
		return err
	}
	if err := v.follow(ctx); err != nil || v.over {
		return err
	}
	for _, compare := range []func(context.Context) error{v.rows, v.permitRows, v.counts, v.staged} {
		if err := compare(ctx); err != nil || v.over {
			return err
		}
	}
	v.unsettled()
	v.idle()
	return nil
}

// follow checks the log from where the last round ended to its head.
func (v *verifier) follow(ctx context.Context) error {
	head, err := v.store.Head(ctx)
	if err != nil {
		return err
	}
	for r, err := range v.store.Read(ctx, v.report.Head, store.Filter{}) {
		if err != nil {
			return err
		}
		if r.Position <= v.seen {
			continue // it came after the head was asked for, and was read with what was before
		}
		if err := v.event(ctx, r); err != nil || v.over {
			return err
		}
	}
	v.incomplete()
	v.report.Head, v.seen = head, v.last
	return nil
}

// damage turns the error of stored bytes that are not what was written into a violation.
func (v *verifier) damage(err error) bool {
	var corrupt *events.Corrupt
	if !errors.As(err, &corrupt) {
		return false
	}
	v.violate(Violation{corrupt.Entity, corrupt.Version, corrupt.Position, corrupt.Detail})
	return true
}

// told gives back an error that is not damage, which is listed.
func (v *verifier) told(err error) error {
	if v.damage(err) {
		return nil
	}
	return err
}

// violate lists a violation, and ends the verification when the list is full.
func (v *verifier) violate(found Violation) {
	if v.over {
		return
	}
	v.report.Violations = append(v.report.Violations, found)
	if len(v.report.Violations) == v.options.Violations {
		v.stop(fmt.Sprintf("everything behind the first %d violations", v.options.Violations))
	}
}

func (v *verifier) stop(unchecked string) {
	if !v.over {
		v.over = true
		v.report.Unchecked = append(v.report.Unchecked, unchecked)
	}
}
