package projections

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// Lock is a named lock as it stands.
type Lock struct {
	Name    string
	Permits int      // how many it has
	Set     Notice   // who set that last; zero where nobody did, or it is as before anybody did
	Out     []Permit // who holds them, the oldest first
	Waiters []Waiters
}

// Free is how many permits can be taken. It is below zero after their number was lowered, until enough have come back.
func (l Lock) Free() int { return l.Permits - len(l.Out) }

// Permit is one that is out, with the mark of its lock.acquired.
type Permit struct {
	Mark
	Lock      string
	Token     events.Token
	Worker    events.ID
	Message   events.ID // whose claim took it; zero where it is held without a message
	ExpiresAt time.Time // zero where it has no end
	Ended     ClaimEnd  // how the claim that took it ended; zero while it is open, and where no claim took it
}

func permitOf(r events.Recorded, e *events.LockAcquired) Permit {
	return Permit{
		Mark: markOf(r), Lock: r.Entity.Name, Token: e.Token, Worker: e.Worker, Message: e.Message, ExpiresAt: e.ExpiresAt,
	}
}

// toldPermit is a permit that a snapshot tells of.
func toldPermit(r events.Recorded, p events.PermitOut) Permit {
	return Permit{
		Mark: Mark{r.Position, p.AcquiredAt}, Lock: r.Entity.Name, Token: p.Token, Worker: p.Worker, Message: p.Message, ExpiresAt: p.ExpiresAt,
	}
}

func olderPermit(a, b Permit) int { return cmp.Or(a.sooner(b.Mark), cmp.Compare(a.Token, b.Token)) }

// LockTotals counts what happened to locks since the log's beginning. None of them falls.
type LockTotals struct {
	Acquired      int
	Released      int
	Reclaimed     int // since their holder was gone
	ForceReleased int
	Expired       int
	Refused       int // releases that came too late or from somebody else
	Blocked       int // messages that found their lock taken at their turn and wait
	Discarded     int // messages that did not wait
	Repaired      int // messages that waited for a free lock and were sent to try, which is a fault
}

// Ending is how a permit ended that its holder did not give back.
type Ending struct {
	Permit
	EndedAt  Mark
	Type     events.Type     // lock.orphaned, lock.force_released or lock.expired
	Evidence events.Evidence // of one that was orphaned
	By       string
	Detail   string
}

// recentEndings is how many endings, and how many repairs, are kept whole.
const recentEndings = 64

// Locks adds up the locks: who holds them, who waits, how permits ended. Its zero is the beginning of the log.
type Locks struct {
	asOf     Mark
	locks    map[string]*lock        // those that are held, or that somebody configured
	messages map[events.ID]*lockUser // open ones and dead letters that have a lock
	totals   LockTotals
	endings  []Ending
	repairs  []Repair
	pruned   bool // the log has let go of something
}

// lock is what is remembered of one. A free one that nobody configured is forgotten.
type lock struct {
	permits int // 0 is the one of a lock that nobody configured
	set     Notice
	out     map[events.Token]Permit
}

// Apply takes the next event.
func (l *Locks) Apply(r events.Recorded) {
	if !l.asOf.pass(r) {
		return
	}
	if l.locks == nil {
		l.locks, l.messages = map[string]*lock{}, map[events.ID]*lockUser{}
	}
	l.pruned = l.pruned || r.Event.Type().Snapshots()
	switch r.Entity.Kind {
	case events.KindLock:
		l.applyLock(r)
	case events.KindMessage:
		l.applyMessage(r)
	}
}

func (l *Locks) applyLock(r events.Recorded) {
	name := r.Entity.Name
	k := l.locks[name]
	if k == nil {
		k = &lock{out: map[events.Token]Permit{}}
		l.locks[name] = k
	}
	switch e := r.Event.(type) {
	case *events.LockSnapshotted:
		k.tell(r, e)
	case *events.LockConfigured:
		k.permits, k.set = e.Permits, Notice{markOf(r), e.By, e.Detail}
	case *events.LockAcquired:
		l.totals.Acquired++
		k.out[e.Token] = permitOf(r, e)
	case *events.LockReleased:
		l.totals.Released++
		delete(k.out, e.Token)
	case *events.LockOrphaned:
		l.end(Ending{Permit: k.permit(name, e.Token), EndedAt: markOf(r), Type: r.Event.Type(), Evidence: e.Evidence})
	case *events.LockReclaimed:
		l.totals.Reclaimed++
		delete(k.out, e.Token)
	case *events.LockForceReleased:
		l.totals.ForceReleased++
		l.end(Ending{Permit: k.permit(name, e.Token), EndedAt: markOf(r), Type: r.Event.Type(), By: e.By, Detail: cut(e.Detail)})
		delete(k.out, e.Token)
	case *events.LockExpired:
		l.totals.Expired++
		l.end(Ending{Permit: k.permit(name, e.Token), EndedAt: markOf(r), Type: r.Event.Type()})
		delete(k.out, e.Token)
	case *events.LockRefused:
		l.totals.Refused++
	}
	if len(k.out) == 0 && k.permits == 0 {
		delete(l.locks, name)
	}
}

// tell takes up what a snapshot tells, as far as it is not known.
func (k *lock) tell(r events.Recorded, e *events.LockSnapshotted) {
	if fields, ok := told[lockFields](e.Snapshot); ok && fields.Permits != k.permits {
		k.permits, k.set = fields.Permits, Notice{Mark: markOf(r)}
	}
	for _, p := range e.Out {
		if _, known := k.out[p.Token]; !known {
			k.out[p.Token] = toldPermit(r, p)
		}
	}
}

// permit is one that is out, or what an event says of one whose beginning was never seen.
func (k *lock) permit(name string, token events.Token) Permit {
	if p, ok := k.out[token]; ok {
		return p
	}
	return Permit{Lock: name, Token: token}
}

func (l *Locks) end(e Ending) { l.endings = latest(l.endings, e, recentEndings) }

// AsOf is the last event that was applied.
func (l *Locks) AsOf() Mark { return l.asOf }

// Totals counts what happened to all locks.
func (l *Locks) Totals() LockTotals { return l.totals }

// Endings is the last permits that their holders did not give back, the oldest ending first.
func (l *Locks) Endings() []Ending { return slices.Clone(l.endings) }

// Repairs is the last messages that waited for a free lock, the oldest first.
func (l *Locks) Repairs() []Repair { return slices.Clone(l.repairs) }

// All is every lock that is held, waited for, or configured, by name.
func (l *Locks) All() []Lock {
	waiters := l.waiters("")
	names := map[string]bool{}
	for name := range l.locks {
		names[name] = true
	}
	for name := range waiters {
		names[name] = true
	}
	list := make([]Lock, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, l.copy(name, waiters[name]))
	}
	return list
}

// Lock is one lock of All.
func (l *Locks) Lock(name string) (Lock, bool) {
	waiters := l.waiters(name)[name]
	if l.locks[name] == nil && len(waiters) == 0 {
		return Lock{}, false
	}
	return l.copy(name, waiters), true
}

// Of is the lock of a message that has one and has not ended.
func (l *Locks) Of(message events.ID) (string, bool) {
	m, ok := l.messages[message]
	if !ok {
		return "", false
	}
	return m.lock, true
}

func (l *Locks) copy(name string, waiters []Waiters) Lock {
	c := Lock{Name: name, Permits: 1, Waiters: waiters}
	if k := l.locks[name]; k != nil {
		c.Permits = max(k.permits, 1)
		if k.permits > 0 {
			c.Set = k.set
		}
		c.Out = slices.SortedFunc(maps.Values(k.out), olderPermit)
		for i, p := range c.Out {
			c.Out[i] = l.settled(p)
		}
	}
	return c
}

// settled is a permit with how its claim ended. Where the log has let go of that, what is known is that no claim is open which took it.
func (l *Locks) settled(p Permit) Permit {
	if l.pruned && p.Message != (events.ID{}) && p.Ended.Position == 0 {
		if m := l.messages[p.Message]; m == nil || m.token != p.Token {
			p.Ended.Mark = p.Mark
		}
	}
	return p
}
