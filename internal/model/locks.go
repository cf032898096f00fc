package model

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// lock is a lock, with the permits that it has; 0 is the one of a lock that nobody configured.
type lock struct {
	name    string
	state   string
	version int
	permits int
	held    int
}

func (k *lock) free() int { return max(k.permits, 1) - k.held }

// permit is one that is out.
type permit struct {
	lock     string
	token    int
	worker   string
	message  string // whose claim took it; empty where it is held without one
	acquired time.Duration
	expires  time.Duration
	ends     bool // it has a TTL
}

// offer is a lock that may be free for those who wait for it: of one topic, or of all where it is empty.
type offer struct{ lock, topic string }

// commit is what the rules of one call know beside the state of everything: what they were given, and what they left free.
type commit struct {
	fence   int                   // the token of the next permit
	waiting map[string][]*message // by lock, those who may be told that it is free: of every topic the first that is blocked
	offers  []offer
}

// begin is the beginning of a call that sees who waits for these locks.
func (m *model) begin(locks ...string) *commit {
	c := &commit{fence: m.position + 1, waiting: map[string][]*message{}}
	for _, name := range locks {
		c.waiting[name] = m.blocked(name)
	}
	return c
}

// blocked is the first of every topic that is blocked by a lock: by priority, then place.
func (m *model) blocked(lock string) []*message {
	first := map[string]*message{}
	for _, msg := range m.messages {
		if msg.state != "blocked" || msg.lock != lock {
			continue
		}
		if f := first[msg.topic]; f == nil || msg.priority < f.priority {
			first[msg.topic] = msg
		}
	}
	var list []*message
	for _, msg := range first {
		list = append(list, msg)
	}
	slices.SortFunc(list, func(a, b *message) int { return strings.Compare(a.topic, b.topic) })
	return list
}

// close is the end of a call: who waits for what it left free goes back to try, of every topic the first.
func (m *model) close(c *commit) {
	all := map[string]bool{}
	for _, o := range c.offers {
		all[o.lock] = all[o.lock] || o.topic == ""
	}
	done := map[offer]bool{}
	for _, o := range c.offers {
		if done[o] || o.topic != "" && all[o.lock] {
			continue
		}
		done[o] = true
		if m.lock(o.lock).free() <= 0 {
			continue
		}
		for _, msg := range c.waiting[o.lock] {
			if msg.state == "blocked" && (o.topic == "" || msg.topic == o.topic) {
				msg.trying, msg.due = true, min(msg.due, m.now)
				m.move(msg, "queued", "unblocked", fields{}.str("lock", msg.lock))
				m.last("message " + msg.name)
			}
		}
	}
}

func (m *model) lock(name string) *lock {
	if k, ok := m.locks[name]; ok {
		return k
	}
	return &lock{name: name, state: "none"}
}

// moveLock records an event of a lock, after which so many of its permits are out.
func (m *model) moveLock(k *lock, typ string, f fields) {
	from := k.state
	k.version++
	if k.state = "free"; k.held > 0 {
		k.state = "held"
	}
	m.locks[k.name] = k
	m.record("lock "+k.name, versions(k.version, from, k.state)+" lock."+typ, f)
}

// take takes a permit of a lock that has one free.
func (m *model) take(c *commit, p permit) int {
	k := m.lock(p.lock)
	p.token, p.acquired = c.fence, m.now
	c.fence++
	k.held++
	f := fields{}.num("token", p.token).str("worker", p.worker).str("message", p.message)
	if p.ends {
		f = f.when("expires", p.expires)
	}
	m.moveLock(k, "acquired", f.num("held", k.held))
	m.permits = append(m.permits, p)
	if k.free() > 0 {
		c.offers = append(c.offers, offer{lock: k.name})
	}
	return p.token
}

// out is a permit that is out; false where it is not.
func (m *model) out(lock string, token int) (permit, bool) {
	i := slices.IndexFunc(m.permits, func(p permit) bool { return p.lock == lock && p.token == token })
	if token == 0 || i < 0 {
		return permit{}, false
	}
	return m.permits[i], true
}

// giveBack ends a permit that is out.
func (m *model) giveBack(c *commit, p permit, typ string, f fields) {
	k := m.lock(p.lock)
	k.held--
	m.permits = slices.DeleteFunc(m.permits, func(q permit) bool { return q.lock == p.lock && q.token == p.token })
	m.moveLock(k, typ, fields{fields{}.num("token", p.token).num("held", k.held).text + f.text})
	c.offers = append(c.offers, offer{lock: p.lock})
}

// permitsOf are those that pass, by lock, then token.
func (m *model) permitsOf(pass func(permit) bool) []permit {
	var list []permit
	for _, p := range m.permits {
		if pass(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b permit) int { return cmp.Or(strings.Compare(a.lock, b.lock), cmp.Compare(a.token, b.token)) })
	return list
}

// configureLock sets how many permits a lock has.
func (m *model) configureLock(name string, permits int, by string) {
	c := m.begin(name)
	k := m.lock(name)
	if max(permits, 1) == max(k.permits, 1) {
		return
	}
	k.permits = permits
	m.moveLock(k, "configured", fields{}.num("permits", permits).str("by", by))
	if k.free() > 0 {
		c.offers = append(c.offers, offer{lock: name})
	}
	m.close(c)
}

// acquire takes a permit without a message. What has expired makes room.
func (m *model) acquire(worker, lock string, ttl time.Duration) {
	before := m.snapshot(lock)
	c := m.begin(lock)
	m.expireIn(c, lock)
	if k := m.lock(lock); k.free() <= 0 {
		state := k.state
		m.restore(before)
		m.refuse(refusal{"acquire", "lock_taken"}, "lock/"+lock, state, "")
		return
	}
	m.take(c, permit{lock: lock, worker: worker, expires: m.now + ttl, ends: ttl > 0})
	m.close(c)
}

// held is a lock as it was before a call that is refused as a whole.
type held struct {
	lock    *lock
	kept    lock
	permits []permit
	groups  []group
}

func (m *model) snapshot(name string) held {
	k := m.lock(name)
	return held{k, *k, slices.Clone(m.permits), slices.Clone(m.groups)}
}

func (m *model) restore(h held) {
	*h.lock = h.kept
	m.permits, m.groups = h.permits, h.groups
}

// expire ends the permits of a lock whose time is over.
func (m *model) expire(lock string) {
	c := m.begin(lock)
	m.expireIn(c, lock)
	m.close(c)
}

func (m *model) expireIn(c *commit, lock string) {
	for _, p := range m.permitsOf(func(p permit) bool { return p.lock == lock && p.ends && p.expires <= m.now }) {
		m.giveBack(c, p, "expired", fields{})
	}
}

// unlock gives a permit back: holder and token must be those of the permit.
func (m *model) unlock(worker, lock string, token, recordable int) {
	c := m.begin(lock)
	if p, out := m.out(lock, token); out && p.worker == worker {
		m.giveBack(c, p, "released", fields{})
		m.close(c)
		return
	}
	k := m.lock(lock)
	m.refuse(refusal{"unlock", "not_held"}, "lock/"+lock, k.state, "")
	if k.state != "none" && recordable > 0 {
		f := fields{}.str("command", "unlock").str("reason", "not_held").str("sender", worker).num("sent", token)
		m.record("lock "+lock, k.state+" lock.refused", f)
	}
}

// forceRelease takes permits of a lock from whoever holds them: one, or all of them.
func (m *model) forceRelease(lock string, token int, by string) {
	c := m.begin(lock)
	for _, p := range m.permitsOf(func(p permit) bool { return p.lock == lock && (token == 0 || p.token == token) }) {
		m.giveBack(c, p, "force_released", fields{}.str("by", by))
	}
	m.close(c)
}
