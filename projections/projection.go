package projections

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Projection is a fold over recorded events, in the order of the log.
type Projection interface {
	// Apply takes the next event. It neither fails nor blocks.
	Apply(events.Recorded)
}

// Follow applies recorded events to projections until there are no more, or until one comes with an error, which it gives back. Those
// before it have been applied.
func Follow(list iter.Seq2[events.Recorded, error], to ...Projection) error {
	for r, err := range list {
		if err != nil {
			return err
		}
		for _, p := range to {
			p.Apply(r)
		}
	}
	return nil
}

// Mark is a place in the log with its time. Its zero is before everything. Of what had its beginning let go the place is that of the snapshot which
// tells it once more, and the time its own where the snapshot tells that, else that of the snapshot: it is older then.
type Mark struct {
	Position int64
	At       time.Time // the store's time of the commit
}

func markOf(r events.Recorded) Mark { return Mark{r.Position, r.At()} }

// pass moves the mark to an event and reports whether it is to be applied: one that was is not applied again, and one that this version
// does not know is passed over.
func (m *Mark) pass(r events.Recorded) bool {
	if r.Position <= m.Position {
		return false
	}
	*m = markOf(r)
	_, unknown := r.Event.(*events.Unknown)
	return !unknown
}

// compare orders marks by their place in the log.
func (m Mark) compare(o Mark) int { return cmp.Compare(m.Position, o.Position) }

// sooner orders marks by their time, then by their place: the place of what a snapshot tells says nothing of when it was.
func (m Mark) sooner(o Mark) int { return cmp.Or(m.At.Compare(o.At), m.compare(o)) }

// Notice is a setting that somebody made, with their words.
type Notice struct {
	Mark
	By     string
	Detail string
}

// Claim is a claim that is open, with the mark of its message.claimed.
type Claim struct {
	Mark
	Message events.ID
	Worker  events.ID
	Token   events.Token
	Attempt int
	Counted bool // it counts towards its topic's limit

	LockToken events.Token // of the permit that it took; 0 where its message has no lock
}

func claimOf(r events.Recorded, e *events.MessageClaimed) Claim {
	return Claim{
		Mark: markOf(r), Message: r.Entity.ID, Worker: e.Worker, Token: e.Token, Attempt: e.Attempt, Counted: e.Limit > 0,
		LockToken: e.LockToken,
	}
}

func older(a, b Claim) int { return a.sooner(b.Mark) }

// claimed reports whether a message in the state has an open claim. An orphaned one has, until the next event of its commit.
func claimed(s events.State) bool { return s == events.Running || s == events.Orphaned }

// since is the time from then until at: 0 where the clock went back, or where the beginning was never seen.
func since(then, at time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return max(0, at.Sub(then))
}

// latest is a list with one more at its end, and no more than n.
func latest[T any](list []T, v T, n int) []T {
	if len(list) == n {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, v)
}

// ended reports whether a message in the state is history: nothing more is to come of it. A dead letter may be redriven.
func ended(s events.State) bool {
	return s == events.Completed || s == events.Cancelled || s == events.Discarded
}
