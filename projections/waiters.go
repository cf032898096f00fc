package projections

import (
	"cmp"
	"slices"

	"github.com/foundling-go/foundling/events"
)

// This file is what Locks knows of messages.

// ClaimEnd is how a claim ended whose permit is still out: its worker has not said yet that the handler has ended. Where the log has let go of
// that, it has the mark of the permit and no type.
type ClaimEnd struct {
	Mark
	Type   events.Type
	Reason events.Reason
	By     string
	Detail string
}

// Waiters is who waits for a lock on one topic.
type Waiters struct {
	Topic   string
	Blocked int
	Trying  int       // they were unblocked and have not tried yet
	Longest events.ID // who has waited for longest
	Since   Mark      // since when he has
}

// Repair is a message that waited for a lock that was free, until it was sent to try.
type Repair struct {
	Mark
	Lock    string
	Topic   string
	Message events.ID
}

// lockUser is a message that has a lock.
type lockUser struct {
	lock, topic string
	state       events.State
	trying      bool
	since       Mark         // since when it has waited; zero while it does not
	token       events.Token // of the permit that its open claim took
}

func (l *Locks) applyMessage(r events.Recorded) {
	m := l.messages[r.Entity.ID]
	switch e := r.Event.(type) {
	case *events.MessageSnapshotted:
		if m == nil {
			l.told(r, e)
		}
		return
	case *events.MessageEnqueued:
		if e.Lock != "" {
			m = &lockUser{lock: e.Lock, topic: e.Topic}
			l.messages[r.Entity.ID] = m
		}
	}
	if m == nil || !r.Event.Type().Moves() {
		return
	}
	switch e := r.Event.(type) {
	case *events.MessageBlocked:
		l.totals.Blocked++
	case *events.MessageDiscarded:
		if e.Lock != "" { // else it never had its turn
			l.totals.Discarded++
		}
	case *events.MessageUnblocked:
		if e.Repair {
			l.totals.Repaired++
			l.repairs = latest(l.repairs, Repair{markOf(r), m.lock, m.topic, r.Entity.ID}, recentEndings)
		}
	case *events.MessageClaimed:
		m.token = e.LockToken
	}
	if !claimed(r.To) {
		l.endClaim(m, r)
	}
	if m.move(r); ended(r.To) {
		delete(l.messages, r.Entity.ID)
	}
}

// told begins with a message whose beginning was let go.
func (l *Locks) told(r events.Recorded, e *events.MessageSnapshotted) {
	fields, ok := toldMessage(e)
	if !ok || fields.Lock == "" {
		return
	}
	m := &lockUser{lock: fields.Lock, topic: fields.Topic, state: r.To, trying: fields.Trying != 0, token: fields.LockToken}
	if m.waits() {
		m.since = markOf(r)
	}
	l.messages[r.Entity.ID] = m
}

// endClaim notes how the claim ended that took a permit. Where its worker ended it, the permit comes back in the same commit.
func (l *Locks) endClaim(m *lockUser, r events.Recorded) {
	k, token := l.locks[m.lock], m.token
	if m.token = 0; k == nil || token == 0 {
		return
	}
	p, out := k.out[token]
	if !out {
		return
	}
	p.Ended = ClaimEnd{Mark: markOf(r), Type: r.Event.Type()}
	switch e := r.Event.(type) {
	case *events.MessageRequeued:
		p.Ended.Reason, p.Ended.By, p.Ended.Detail = e.Reason, e.By, cut(e.Detail)
	case *events.MessageCancelled:
		p.Ended.Reason, p.Ended.By, p.Ended.Detail = e.Reason, e.By, cut(e.Detail)
	case *events.MessageDeadLettered:
		p.Ended.Reason, p.Ended.By, p.Ended.Detail = e.Reason, e.By, cut(e.Detail)
	}
	k.out[token] = p
}

// move brings the message to the state after an event.
func (m *lockUser) move(r events.Recorded) {
	m.state = r.To
	_, m.trying = r.Event.(*events.MessageUnblocked)
	switch {
	case !m.waits():
		m.since = Mark{}
	case m.since == Mark{}:
		m.since = markOf(r)
	}
}

func (m *lockUser) waits() bool { return m.state == events.Blocked || m.trying }

// waiters is who waits, by lock, then by topic: for one lock, or for all where it is empty.
func (l *Locks) waiters(lock string) map[string][]Waiters {
	type place struct{ lock, topic string }
	sums := map[place]Waiters{}
	for id, m := range l.messages {
		if !m.waits() || lock != "" && m.lock != lock {
			continue
		}
		at := place{m.lock, m.topic}
		w := sums[at]
		w.Topic = m.topic
		if m.trying {
			w.Trying++
		} else {
			w.Blocked++
		}
		if w.Since == (Mark{}) || m.since.compare(w.Since) < 0 {
			w.Longest, w.Since = id, m.since
		}
		sums[at] = w
	}
	byLock := map[string][]Waiters{}
	for at, w := range sums {
		byLock[at.lock] = append(byLock[at.lock], w)
	}
	for _, list := range byLock {
		slices.SortFunc(list, func(a, b Waiters) int { return cmp.Compare(a.Topic, b.Topic) })
	}
	return byLock
}
