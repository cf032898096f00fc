package events

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// ID names a message, a worker's incarnation or a commit: a UUID, version 7 unless the caller gave another.
type ID = uuid.UUID

// Kind is a lifecycle: what sort of thing an entity is. The numbers are stored; they are never used twice.
type Kind uint8

// The kinds of entities.
const (
	KindNone    Kind = 0
	KindMessage Kind = 1
	KindTopic   Kind = 2
	KindWorker  Kind = 3
	KindLock    Kind = 4
	KindLeader  Kind = 8
	KindSweep   Kind = 9
	KindClock   Kind = 10
	KindLog     Kind = 11
)

var kindNames = map[Kind]string{
	KindMessage: "message", KindTopic: "topic", KindWorker: "worker", KindLock: "lock",
	KindLeader: "leader", KindSweep: "sweep", KindClock: "clock",
	KindLog: "log",
}

// Kinds lists the kinds in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{KindMessage, KindTopic, KindWorker, KindLock, KindLeader, KindSweep, KindClock, KindLog}
}

// String is the kind's word, as in "message".
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Named reports whether entities of this kind are known by a name rather than by an id.
func (k Kind) Named() bool {
	return k == KindTopic || k == KindLock || k == KindLeader || k == KindClock || k == KindLog
}

// Rests reports whether an entity of this kind that has no row stands in its newest event: that event says all that is left of it, so that
// nobody reads the rest of a history that may be without end. A free lock does, and so does the log itself.
func (k Kind) Rests() bool { return k == KindLock || k == KindLog }

// Entity is one thing with a lifecycle. Exactly one of ID and Name is set, as its kind says. Entities are comparable.
type Entity struct {
	Kind Kind
	ID   ID
	Name string
}

// MessageEntity is the message with this id.
func MessageEntity(id ID) Entity { return Entity{Kind: KindMessage, ID: id} }

// WorkerEntity is the worker incarnation with this id.
func WorkerEntity(id ID) Entity { return Entity{Kind: KindWorker, ID: id} }

// TopicEntity is the topic with this name.
func TopicEntity(name string) Entity { return Entity{Kind: KindTopic, Name: name} }

// LockEntity is the lock with this name.
func LockEntity(name string) Entity { return Entity{Kind: KindLock, Name: name} }

// LeaderEntity is the leadership with this name.
func LeaderEntity(name string) Entity { return Entity{Kind: KindLeader, Name: name} }

// SweepEntity is the sweep with this id.
func SweepEntity(id ID) Entity { return Entity{Kind: KindSweep, ID: id} }

// ClockEntity is the store's clock.
func ClockEntity() Entity { return Entity{Kind: KindClock, Name: "store"} }

// LogEntity is the store's log: what of it was let go.
func LogEntity() Entity { return Entity{Kind: KindLog, Name: "store"} }

// String is "kind/id" or "kind/name". It is also the entity's stream name where one text column holds both.
func (e Entity) String() string {
	if e.Kind.Named() {
		return e.Kind.String() + "/" + e.Name
	}
	return e.Kind.String() + "/" + e.ID.String()
}

// ParseEntity reads what [Entity.String] writes.
func ParseEntity(s string) (Entity, error) {
	word, rest, ok := strings.Cut(s, "/")
	if !ok {
		return Entity{}, fmt.Errorf("entity %q: want kind/id, as in topic/mail", s)
	}
	for kind, name := range kindNames {
		if name != word {
			continue
		}
		if kind.Named() {
			return Entity{Kind: kind, Name: rest}, nil
		}
		id, err := uuid.Parse(rest)
		if err != nil {
			return Entity{}, fmt.Errorf("entity %q: %w", s, err)
		}
		return Entity{Kind: kind, ID: id}, nil
	}
	return Entity{}, fmt.Errorf("entity %q: unknown kind %q", s, word)
}

// Compare orders entities by kind, then id, then name.
func (e Entity) Compare(o Entity) int {
	if e.Kind != o.Kind {
		return int(e.Kind) - int(o.Kind)
	}
	if c := strings.Compare(string(e.ID[:]), string(o.ID[:])); c != 0 {
		return c
	}
	return strings.Compare(e.Name, o.Name)
}
