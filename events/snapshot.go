package events

import "time"

// Snapshot is the state of an entity as its events had left it, told once more so that these may go.
type Snapshot struct {
	State []byte // canonical JSON, as a store keeps the entity's fields
}

// VisitFields names the snapshot's fields.
func (s *Snapshot) VisitFields(f *Fields) { f.Raw("value", &s.State) }

// told is the snapshot in an event.
func (s *Snapshot) told() Snapshot { return *s }

// SnapshotOf is the snapshot that an event is, if it is one. log.pruned is none: its own fields say all of the log's state.
func SnapshotOf(e Event) (Snapshot, bool) {
	s, ok := e.(interface{ told() Snapshot })
	if !ok {
		return Snapshot{}, false
	}
	return s.told(), true
}

// MessageSnapshotted : the state of the message, told once more.
type MessageSnapshotted struct{ Snapshot }

// Type is message.snapshotted.
func (*MessageSnapshotted) Type() Type { return TypeMessageSnapshotted }

// LockSnapshotted : the state of the lock, told once more, with every permit of it that is out.
type LockSnapshotted struct {
	Snapshot
	Out []PermitOut // by token
}

// PermitOut is a permit that is out, and who holds it.
type PermitOut struct {
	Token      Token
	Worker     ID
	Message    ID        // whose claim took it; zero where it is held without a message
	AcquiredAt time.Time // never zero
	ExpiresAt  time.Time // zero where it has no TTL
}

// VisitFields names the event's fields. What is told of a permit stands in lists of equal length, one for each field.
func (e *LockSnapshotted) VisitFields(f *Fields) {
	e.Snapshot.VisitFields(f)
	n := len(e.Out)
	tokens, acquired, expires := make([]int, n), make([]int, n), make([]int, n)
	workers, messages := make([]ID, n), make([]ID, n)
	for i, p := range e.Out {
		tokens[i], workers[i], messages[i], acquired[i] = int(p.Token), p.Worker, p.Message, int(p.AcquiredAt.UnixMicro())
		if !p.ExpiresAt.IsZero() {
			expires[i] = int(p.ExpiresAt.UnixMicro())
		}
	}
	f.Ints("tokens", &tokens)
	f.IDs("workers", &workers)
	f.IDs("messages", &messages)
	f.Ints("acquired", &acquired)
	f.Ints("expires", &expires)
	if f.walk != reading {
		return
	}
	n, e.Out = len(tokens), nil
	if len(workers) != n || len(messages) != n || len(acquired) != n || len(expires) != n {
		f.fail("field tokens: it lists %d permits, and the fields behind it others", n)
		return
	}
	for i := range n {
		p := PermitOut{Token: Token(tokens[i]), Worker: workers[i], Message: messages[i], AcquiredAt: time.UnixMicro(int64(acquired[i])).UTC()}
		if expires[i] != 0 {
			p.ExpiresAt = time.UnixMicro(int64(expires[i])).UTC()
		}
		e.Out = append(e.Out, p)
	}
}

// Type is lock.snapshotted.
func (*LockSnapshotted) Type() Type { return TypeLockSnapshotted }

// WorkerSnapshotted : the state of the worker, told once more.
type WorkerSnapshotted struct{ Snapshot }

// Type is worker.snapshotted.
func (*WorkerSnapshotted) Type() Type { return TypeWorkerSnapshotted }

// TopicSnapshotted : the state of the topic, told once more.
type TopicSnapshotted struct{ Snapshot }

// Type is topic.snapshotted.
func (*TopicSnapshotted) Type() Type { return TypeTopicSnapshotted }

// LeaderSnapshotted : the state of the leadership, told once more.
type LeaderSnapshotted struct{ Snapshot }

// Type is leader.snapshotted.
func (*LeaderSnapshotted) Type() Type { return TypeLeaderSnapshotted }

// ClockSnapshotted : the state of the store's clock, told once more.
type ClockSnapshotted struct{ Snapshot }

// Type is clock.snapshotted.
func (*ClockSnapshotted) Type() Type { return TypeClockSnapshotted }

// MessageErased : the payload and the result of a message that has ended are gone. It moves nothing.
type MessageErased struct {
	By     string
	Detail string
}

// Type is message.erased.
func (*MessageErased) Type() Type { return TypeMessageErased }

// VisitFields names the event's fields.
func (e *MessageErased) VisitFields(f *Fields) {
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}

// LogPruned : the beginning of the log was let go, with the contents of the messages that ended there. It says all of the log's own state.
type LogPruned struct {
	Through   int64         // the position of the last event that went
	UntilAt   time.Time     // when the last commit that went was decided
	Events    int           // how many went with this commit
	Total     int           // how many ever went
	Retention time.Duration // how old what went had to be; 0 where somebody gave a time
	Decider   ID            // the worker that leads the beat, or that was asked
	Term      int           // under which it leads; 0 where somebody asked
	By        string        // who asked; empty where the beat did
	Detail    string
}

// Type is log.pruned.
func (*LogPruned) Type() Type { return TypeLogPruned }

// VisitFields names the event's fields.
func (e *LogPruned) VisitFields(f *Fields) {
	f.Int64("through", &e.Through)
	f.Time("until", &e.UntilAt)
	f.Int("events", &e.Events)
	f.Int("total", &e.Total)
	f.Duration("retention", &e.Retention)
	f.ID("decider", &e.Decider)
	f.Int("term", &e.Term)
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}
