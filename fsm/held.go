package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// Held is what a store holds still while a composed command decides: everything that the command named, at one time. Whoever is not
// in a map does not exist.
type Held struct {
	Now       time.Time
	Messages  map[events.ID]Message
	Topics    map[string]Topic
	Workers   map[events.ID]Worker
	Keys      map[Key]KeyHolder
	Claimable map[string][]Message    // due messages by topic, in the order in which they are to be claimed
	Claims    map[events.ID][]Message // open claims by worker, a page of them
	Uncounted map[string][]Message    // open claims by topic that do not count towards its limit yet, a page of them

	Locks   map[string]Lock
	Unread  map[string]error     // locks whose rows cannot be read; no claim is granted that takes one, and no permit of theirs is known
	Spoilt  map[events.ID]int    // by worker: claims of its page that cannot be read, and are not in Claims
	Waiting map[string][]Message // by lock and, per topic, in their order: the first that is blocked, and the first that was unblocked and has not tried yet
	Permits []Permit             // those that the command named, by lock, then token
	Beats   map[events.ID]Member // of whom the command asked; whoever has no heartbeat row is there without a time, or not at all
	Clock   Clock
	Leaders map[string]Leader
	Sweeps  map[events.ID]Sweep
	Erased  map[events.ID]bool // of the messages that have ended: those whose contents are gone, by a wish or with the event that ended them
	Log     Log
	Pruning Pruning
	// PrunedAt is when the newest commit that was pruned was decided; zero while none was.
	PrunedAt time.Time

	Fence events.Token // higher than every token of a permit so far; from it on, one for each permit
}

// Key is a name that a caller gave a message. It is taken by one message of its topic at a time.
type Key struct {
	Topic string
	Name  string
}

// KeyHolder is the message that has a key.
type KeyHolder struct {
	Message events.ID
	Open    bool      // the message has not ended
	UntilAt time.Time // the key stays taken until then even if the message has ended
}

// Taken reports whether the key cannot be given to another message yet.
func (k KeyHolder) Taken(now time.Time) bool { return k.Open || now.Before(k.UntilAt) }

// Change is one entity's part of a commit.
type Change struct {
	Value       Value // after it
	From        int   // its version before; 0 where it did not exist
	Transitions []events.Transition
}

// Count is what a commit adds to a topic's running count.
type Count struct {
	Topic string
	Delta int
}

// KeyChange is what becomes of a key: it is given to a holder, or let go where the holder is zero.
type KeyChange struct {
	Key    Key
	Holder KeyHolder
}

// Outcome is everything that a command changes. It is committed as one unit or not at all. An empty one leaves nothing behind.
type Outcome struct {
	Changes []Change
	Counts  []Count
	Keys    []KeyChange
	Permits []PermitChange
	Prune   int64       // every event at or before this position goes; 0 is none
	Erase   []events.ID // messages whose contents go
}

// PermitChange is what becomes of a permit: it is out from here on, or back.
type PermitChange struct {
	Permit Permit
	Back   bool
}

// ledger collects an outcome while a composed command goes through its parts. Later parts see what earlier ones did.
type ledger struct {
	held    Held
	outcome Outcome
	place   map[events.Entity]int
	moved   map[events.ID]*Message
	locks   map[string]Lock    // that were moved
	back    map[PermitKey]bool // permits that are back by now
	offered []offer            // locks that may be free, to be offered to those who wait
}

// offer is a lock that may be free for those who wait for it: of one topic, or of all where it is empty.
type offer struct{ lock, topic string }

func newLedger(held Held) *ledger {
	n := len(held.Messages)
	for _, list := range held.Claimable {
		n += len(list)
	}
	return &ledger{held: held, outcome: Outcome{Changes: make([]Change, 0, n)}, place: make(map[events.Entity]int, n), moved: make(map[events.ID]*Message, n)}
}

// message is the message as it stands by now.
func (l *ledger) message(id events.ID) Message {
	if m, ok := l.moved[id]; ok {
		return *m
	}
	if m, ok := l.held.Messages[id]; ok {
		return m
	}
	return Message{ID: id}
}

// move carries out a command on a message, with what always goes with it: the slot its claim counts for, and its key.
func (l *ledger) move(m Message, c MessageCommand) (Message, error) {
	list, err := m.Decide(c, l.held.Now)
	if err != nil {
		return m, err
	}
	if r := l.keyTaken(m, c); r != nil {
		r.Command = c.Name()
		return m, r
	}
	after := m
	transitions := make([]events.Transition, len(list))
	for i, event := range list {
		before := after
		after = after.Evolve(event, l.held.Now)
		transitions[i] = events.Transition{Event: event, Version: after.Version, From: before.State, To: after.State}
	}
	l.change(&after, m.Version, transitions)
	l.moved[m.ID] = &after
	l.count(after.Topic, slot(after)-slot(m))
	if after.Key != "" && after.Open() != m.Open() {
		l.key(after)
	}
	if m.Lock != "" && m.State == events.Queued && !after.Open() {
		l.offered = append(l.offered, offer{m.Lock, m.Topic}) // it may have been the one that its topic sent to try
	}
	return after, nil
}

// keyTaken is the refusal of a message that would open again while another one has its key; nil where it may.
func (l *ledger) keyTaken(m Message, c MessageCommand) *Refusal {
	if _, opens := c.(RedriveMessage); !opens || m.Key == "" {
		return nil
	}
	holder := l.holder(Key{m.Topic, m.Key})
	if holder.Message == m.ID || !holder.Taken(l.held.Now) {
		return nil
	}
	r := m.refusal("", events.ReasonKeyTaken)
	r.Detail = "message " + holder.Message.String() + " has its key " + m.Key
	return r
}

func slot(m Message) int {
	if m.Counted {
		return 1
	}
	return 0
}

// note records something under a message that moves nothing.
func (l *ledger) note(m Message, event events.Event) {
	l.change(&m, m.Version, []events.Transition{{Event: event, From: m.State, To: m.State}})
}

func (l *ledger) change(v Value, from int, transitions []events.Transition) {
	entity := v.Entity()
	if i, ok := l.place[entity]; ok {
		c := &l.outcome.Changes[i]
		c.Value, c.Transitions = v, append(c.Transitions, transitions...)
		return
	}
	l.place[entity] = len(l.outcome.Changes)
	l.outcome.Changes = append(l.outcome.Changes, Change{Value: v, From: from, Transitions: transitions})
}

func (l *ledger) count(topic string, delta int) {
	for i := range l.outcome.Counts {
		if l.outcome.Counts[i].Topic == topic {
			l.outcome.Counts[i].Delta += delta
			return
		}
	}
	if delta != 0 {
		l.outcome.Counts = append(l.outcome.Counts, Count{topic, delta})
	}
}

// key takes the message's key while it is open, and lets it go when it has ended and its time is over.
func (l *ledger) key(m Message) {
	change := KeyChange{Key: Key{m.Topic, m.Key}}
	if holder := (KeyHolder{Message: m.ID, Open: m.Open(), UntilAt: m.UniqueAt}); holder.Taken(l.held.Now) {
		change.Holder = holder
	}
	l.outcome.Keys = append(l.outcome.Keys, change)
}

// holder is who has a key by now.
func (l *ledger) holder(key Key) KeyHolder {
	for i := len(l.outcome.Keys) - 1; i >= 0; i-- {
		if l.outcome.Keys[i].Key == key {
			return l.outcome.Keys[i].Holder
		}
	}
	return l.held.Keys[key]
}
