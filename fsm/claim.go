package fsm

import "github.com/foundling-go/foundling/events"

// Claim gives a worker messages to begin at once: a claim is a start.
type Claim struct {
	Worker events.ID
	Asks   []Ask // each topic at most once
	Most   int   // in total, the topics served in the order of the asks; 0 is no bound beyond the asks
}

// Ask is how many messages of a topic a worker has free hands for.
type Ask struct {
	Topic string
	N     int
}

// Name is "claim".
func (Claim) Name() string { return "claim" }

// VisitFields names the parameters that the events do not carry.
func (c *Claim) VisitFields(f *events.Fields) {
	topics, counts := make([]string, len(c.Asks)), make([]int, len(c.Asks))
	for i, ask := range c.Asks {
		topics[i], counts[i] = ask.Topic, ask.N
	}
	f.ID("worker", &c.Worker)
	f.Texts("topics", &topics)
	f.Ints("n", &counts)
	f.Int("most", &c.Most)
	if c.Asks = nil; len(topics) == len(counts) {
		for i := range topics {
			c.Asks = append(c.Asks, Ask{topics[i], counts[i]})
		}
	}
}

// Decide grants what is claimable, within each topic's limit. A message takes its lock with it; one whose lock is taken is blocked, or
// discarded where it does not wait, and costs no slot.
func (c Claim) Decide(held Held) (Outcome, error) {
	l := newLedger(held)
	free := c.Most
	for _, ask := range c.Asks {
		topic := held.Topics[ask.Topic]
		for _, m := range held.Claimable[ask.Topic] {
			if topic.Room(ask.N) <= 0 || c.Most > 0 && free == 0 {
				break
			}
			claim := ClaimMessage{Worker: c.Worker, Counted: topic.Limited(), Running: topic.Running + 1, Limit: topic.Limit}
			granted, err := l.claim(m, claim)
			if err != nil {
				return Outcome{}, err
			}
			if granted {
				free--
				ask.N--
				topic.Running++
			}
		}
	}
	return l.close()
}

// claim grants a message with its lock. It is false where the lock is taken.
func (l *ledger) claim(m Message, c ClaimMessage) (bool, error) {
	if m.Lock != "" {
		lock := l.lock(m.Lock)
		if lock.Free() <= 0 {
			_, err := l.move(m, BlockMessage{})
			return false, err
		}
		token, err := l.acquire(lock, AcquireLock{Worker: c.Worker, Message: m.ID})
		if err != nil {
			return false, err
		}
		c.LockToken = token
	}
	_, err := l.move(m, c)
	return err == nil, err
}
