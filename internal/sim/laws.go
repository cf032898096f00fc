package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
)

// laws follows the log with a fold of its own, which knows nothing of package fsm, and says where an event breaks a law of DESIGN section 6.
type laws struct {
	messages map[events.ID]*message
	topics   map[string]*topic
	locks    map[string]*lock
	workers  map[events.ID]events.State
}

// message is as much of a message as the laws speak of.
type message struct {
	state   events.State
	version int
	topic   string
	lock    string
	skips   bool
	trying  bool
	due     time.Time
	claims  int
	worker  events.ID // of the open claim, as the next two are
	token   events.Token
	permit  events.Token
	counted bool
	newest  events.Token // of all its claims
}

type topic struct {
	limit    int
	running  int
	counting bool
}

// lock is as much of a lock as the laws speak of.
type lock struct {
	version int
	at      int64 // the position of its newest event
	permits int
	out     map[events.Token]*permit
	newest  events.Token            // of all its permits
	forced  map[events.Token]string // permits that an operator took, and by which command
}

// permit is one that is out.
type permit struct {
	worker  events.ID
	message events.ID
	told    bool // its claim was ended from outside: its handler was told to stop and has not said that it did
}

// queue is those of a topic who wait for a lock.
type queue struct{ lock, topic string }

func newLaws() *laws {
	return &laws{messages: map[events.ID]*message{}, topics: map[string]*topic{}, locks: map[string]*lock{}, workers: map[events.ID]events.State{}}
}

func (l *laws) topic(name string) *topic {
	if l.topics[name] == nil {
		l.topics[name] = &topic{}
	}
	return l.topics[name]
}

func (l *laws) lock(name string) *lock {
	if l.locks[name] == nil {
		l.locks[name] = &lock{out: map[events.Token]*permit{}, forced: map[events.Token]string{}}
	}
	return l.locks[name]
}

func (k *lock) free() int { return max(k.permits, 1) - len(k.out) }

// event takes in the next event of the log.
func (l *laws) event(r events.Recorded) error {
	switch r.Entity.Kind {
	case events.KindMessage:
		return l.messageEvent(r)
	case events.KindLock:
		return l.lock(r.Entity.Name).event(r)
	case events.KindTopic:
		t := l.topic(r.Entity.Name)
		switch e := r.Event.(type) {
		case *events.TopicConfigured:
			t.limit, t.counting = e.Limit, e.Counting
		case *events.TopicCounted:
			t.counting = false
		}
	case events.KindWorker:
		l.workers[r.Entity.ID] = r.To
	case events.KindLog:
		if e, ok := r.Event.(*events.LogPruned); ok {
			l.pruned(e)
		}
	}
	return nil
}

// pruned takes in that the beginning of the log went: a free lock of which nothing is left begins anew.
func (l *laws) pruned(e *events.LogPruned) {
	for _, k := range l.locks {
		if k.at <= e.Through {
			k.version = 0
		}
	}
}

func (l *laws) messageEvent(r events.Recorded) error {
	m := l.messages[r.Entity.ID]
	if m == nil {
		m = &message{}
		l.messages[r.Entity.ID] = m
	}
	if r.From != m.state {
		return fmt.Errorf("law 1: it is recorded from %s, it was %s", r.From, m.state)
	}
	if e, ok := r.Event.(*events.MessageRefused); ok {
		if r.Version != 0 || r.To != m.state || e.Sent == m.token && m.token != 0 {
			return errors.New("law 5: a refusal moves nothing, and the open claim is not refused")
		}
		return nil
	}
	if m.version++; r.Version != m.version {
		return fmt.Errorf("law 1: version %d follows %d", r.Version, m.version-1)
	}
	m.state = r.To
	switch e := r.Event.(type) {
	case *events.MessageEnqueued:
		m.topic, m.lock, m.skips = e.Topic, e.Lock, e.OnLocked == events.SkipIfLocked
		m.due = r.At()
		if e.DueAt.After(m.due) {
			m.due = e.DueAt
		}
	case *events.MessageClaimed:
		return l.claimed(m, r, e)
	case *events.MessageBlocked, *events.MessageUnblocked, *events.MessageDiscarded:
		return l.waits(m, r)
	case *events.MessageCounted:
		if m.counted || m.token == 0 {
			return errors.New("law 2: only an open claim that does not count yet is counted")
		}
		m.counted = true
		l.topic(m.topic).running++
	case *events.MessageOrphaned:
		if e.Evidence.Claimer != m.worker || e.Token != m.token {
			return errors.New("law 5: its claim is another's")
		}
	case *events.MessageRedriven:
		m.due = r.At()
	case *events.MessageSnapshotted:
		if r.From != r.To {
			return errors.New("law 1: a snapshot moves nothing")
		}
	default:
		return l.ends(m, r)
	}
	return nil
}

// claimed takes in a claim: there is one at a time, its token is higher than any before, its topic had room, and its lock is its own.
func (l *laws) claimed(m *message, r events.Recorded, e *events.MessageClaimed) error {
	t := l.topic(m.topic)
	switch p := l.lock(m.lock).out[e.LockToken]; {
	case m.token != 0:
		return errors.New("law 5: a claim is open already")
	case e.Token <= m.newest:
		return fmt.Errorf("law 5: token %d follows token %d", e.Token, m.newest)
	case m.due.After(r.At()):
		return errors.New("law 3: it is not due yet")
	case t.counting:
		return errors.New("law 2: its topic grants nothing")
	case t.limit > 0 && t.running >= t.limit:
		return fmt.Errorf("law 2: %d are running, the limit is %d", t.running, t.limit)
	case m.lock == "" && e.LockToken != 0, m.lock != "" && (p == nil || p.worker != e.Worker || p.message != r.Entity.ID):
		return fmt.Errorf("law 7: it runs with permit %d of lock %q, which is not its own", e.LockToken, m.lock)
	case l.workers[e.Worker] != events.Live && l.workers[e.Worker] != events.Lost:
		return fmt.Errorf("law 7: its worker is %s", l.workers[e.Worker])
	}
	if m.claims++; e.Attempt != m.claims {
		return fmt.Errorf("law 6: attempt %d is recorded, it is claim number %d", e.Attempt, m.claims)
	}
	m.worker, m.token, m.permit, m.counted, m.newest, m.trying = e.Worker, e.Token, e.LockToken, t.limit > 0, e.Token, false
	if m.counted {
		t.running++
	}
	return nil
}

// ends takes in what ends a claim, or a message.
func (l *laws) ends(m *message, r events.Recorded) error {
	var token events.Token
	outside := false // the handler may still run
	switch e := r.Event.(type) {
	case *events.MessageRequeued:
		token, outside = e.Token, e.Reason == events.ReasonTakenBack
		if !e.DueAt.IsZero() {
			m.due = e.DueAt
		} else if m.due.After(r.At()) { // it was due when it was claimed; the clock was set back since
			m.due = r.At()
		}
	case *events.MessageCompleted:
		token = e.Token
	case *events.MessageDeadLettered:
		token = e.Token
	case *events.MessageCancelled:
		token, outside = e.Token, e.Reason == events.ReasonOperator
	default:
		return fmt.Errorf("the laws know no %s", e.Type())
	}
	if token != m.token {
		return fmt.Errorf("law 5: it ends the claim with token %d, the open one has %d", token, m.token)
	}
	if m.counted {
		l.topic(m.topic).running--
	}
	if p := l.lock(m.lock).out[m.permit]; p != nil && outside {
		p.told = true
	}
	m.worker, m.token, m.permit, m.counted, m.trying = events.ID{}, 0, 0, false, false
	return nil
}

// waits takes in what becomes of a message at a lock.
func (l *laws) waits(m *message, r events.Recorded) error {
	free := l.lock(m.lock).free()
	switch e := r.Event.(type) {
	case *events.MessageBlocked:
		if m.trying = false; free > 0 {
			return fmt.Errorf("law 3: it waits for a lock of which %d permits are free", free)
		}
	case *events.MessageUnblocked:
		if m.trying = true; e.Repair {
			return errors.New("law 3: nobody had told it that its lock was free")
		}
		if m.due.After(r.At()) { // it was due when it was blocked; the clock was set back since
			m.due = r.At()
		}
	case *events.MessageDiscarded:
		if !m.skips || m.claims > 0 || free > 0 {
			return fmt.Errorf("law 3: %d permits are free, it was claimed %d times", free, m.claims)
		}
	}
	return nil
}

// event takes in an event of a lock: no more permits are out than it has, each comes back once, and tokens rise.
func (k *lock) event(r events.Recorded) error {
	if r.Version == 0 {
		return nil
	}
	k.at = r.Position
	if k.version++; r.Version != k.version {
		return fmt.Errorf("law 1: version %d follows %d", r.Version, k.version-1)
	}
	switch e := r.Event.(type) {
	case *events.LockConfigured:
		k.permits = e.Permits
	case *events.LockAcquired:
		if k.free() <= 0 || e.Token <= k.newest {
			return fmt.Errorf("law 7: %d permits are out of %d, the newest is %d", len(k.out), max(k.permits, 1), k.newest)
		}
		k.newest = e.Token
		k.out[e.Token] = &permit{worker: e.Worker, message: e.Message}
	case *events.LockOrphaned:
		if p := k.out[e.Token]; p == nil || p.worker != e.Evidence.Claimer {
			return errors.New("law 7: the permit is not out, or another's")
		}
	case *events.LockReclaimed:
		return k.back(e.Token)
	case *events.LockReleased:
		return k.back(e.Token)
	case *events.LockForceReleased:
		k.forced[e.Token] = r.Commit.Command.Name
		return k.back(e.Token)
	}
	return nil
}

// back takes in that a permit is back: nothing is released twice.
func (k *lock) back(token events.Token) error {
	if k.out[token] == nil {
		return fmt.Errorf("law 7: permit %d is back already", token)
	}
	delete(k.out, token)
	return nil
}

// settled holds what is left between two commits against the laws: every permit has its holder, and no waiter was forgotten.
func (l *laws) settled() error {
	for name, k := range l.locks {
		for token, p := range k.out {
			if state := l.workers[p.worker]; state != events.Live && state != events.Lost {
				return fmt.Errorf("law 7: the holder of permit %d of %s is %s", token, name, state)
			}
			if m := l.messages[p.message]; !p.told && (m == nil || m.permit != token || m.worker != p.worker || m.lock != name) {
				return fmt.Errorf("law 7: the claim that took permit %d of %s has ended", token, name)
			}
		}
	}
	var blocked, trying map[queue]bool
	for _, m := range l.messages {
		if m.state == events.Blocked {
			blocked = with(blocked, queue{m.lock, m.topic})
		}
		if m.trying {
			trying = with(trying, queue{m.lock, m.topic})
		}
	}
	for q := range blocked {
		if !trying[q] && l.lock(q.lock).free() > 0 {
			return fmt.Errorf("law 3: %s is free, and of %s all who wait for it are blocked", q.lock, q.topic)
		}
	}
	return nil
}

func with[K comparable](set map[K]bool, key K) map[K]bool {
	if set == nil {
		set = map[K]bool{}
	}
	set[key] = true
	return set
}
