package events

import "fmt"

// Event is a fact about one entity. The set of types is closed: they are the structs of this package, always behind a pointer, and
// nobody changes one once it is made.
type Event interface {
	Visitor
	// Type is its type's number.
	Type() Type
}

// Type is the sort of an event. The numbers are stored; they are never used twice. Each lifecycle has a block of them.
type Type uint16

// The types. Blocks: message from 1, lock from 20, worker from 30, topic from 40, schedule from 50, run from 60, step from 70,
// leader and sweep from 80, the store itself from 90.
const (
	TypeMessageEnqueued     Type = 1
	TypeMessageClaimed      Type = 2
	TypeMessageCompleted    Type = 3
	TypeMessageRequeued     Type = 4
	TypeMessageOrphaned     Type = 5
	TypeMessageDeadLettered Type = 6
	TypeMessageCancelled    Type = 7
	TypeMessageRedriven     Type = 8
	TypeMessageRefused      Type = 9
	TypeMessageCounted      Type = 10
	TypeMessageBlocked      Type = 11
	TypeMessageUnblocked    Type = 12
	TypeMessageDiscarded    Type = 13
	TypeMessageErased       Type = 14
	TypeMessageSnapshotted  Type = 15

	TypeLockConfigured    Type = 20
	TypeLockAcquired      Type = 21
	TypeLockReleased      Type = 22
	TypeLockOrphaned      Type = 23
	TypeLockReclaimed     Type = 24
	TypeLockForceReleased Type = 25
	TypeLockExpired       Type = 26
	TypeLockRefused       Type = 27
	TypeLockSnapshotted   Type = 28

	TypeWorkerStarted     Type = 30
	TypeWorkerStopped     Type = 31
	TypeWorkerLost        Type = 32
	TypeWorkerReturned    Type = 33
	TypeWorkerGap         Type = 34
	TypeWorkerPurged      Type = 35
	TypeWorkerSnapshotted Type = 36

	TypeTopicConfigured  Type = 40
	TypeTopicCounted     Type = 41
	TypeTopicPaused      Type = 42
	TypeTopicResumed     Type = 43
	TypeTopicSnapshotted Type = 44

	TypeLeaderElected     Type = 80
	TypeLeaderResigned    Type = 81
	TypeLeaderLost        Type = 82
	TypeLeaderSnapshotted Type = 83

	TypeSweepFinished Type = 85
	TypeSweepRefused  Type = 86

	TypeClockStepped     Type = 90
	TypeClockSnapshotted Type = 91
	TypeLogPruned        Type = 92
)

// typeInfo is one line of the table of types.
type typeInfo struct {
	code   Type
	name   string
	kind   Kind
	schema int // the version written now
	moves  bool
	blank  func() Event // a new event of the type, to be read into
}

var typeTable = []typeInfo{
	{TypeMessageEnqueued, "message.enqueued", KindMessage, 1, true, func() Event { return new(MessageEnqueued) }},
	{TypeMessageClaimed, "message.claimed", KindMessage, 1, true, func() Event { return new(MessageClaimed) }},
	{TypeMessageCompleted, "message.completed", KindMessage, 1, true, func() Event { return new(MessageCompleted) }},
	{TypeMessageRequeued, "message.requeued", KindMessage, 1, true, func() Event { return new(MessageRequeued) }},
	{TypeMessageOrphaned, "message.orphaned", KindMessage, 1, true, func() Event { return new(MessageOrphaned) }},
	{TypeMessageDeadLettered, "message.dead_lettered", KindMessage, 1, true, func() Event { return new(MessageDeadLettered) }},
	{TypeMessageCancelled, "message.cancelled", KindMessage, 1, true, func() Event { return new(MessageCancelled) }},
	{TypeMessageRedriven, "message.redriven", KindMessage, 1, true, func() Event { return new(MessageRedriven) }},
	{TypeMessageRefused, "message.refused", KindMessage, 1, false, func() Event { return new(MessageRefused) }},
	{TypeMessageCounted, "message.counted", KindMessage, 1, true, func() Event { return new(MessageCounted) }},
	{TypeMessageBlocked, "message.blocked", KindMessage, 1, true, func() Event { return new(MessageBlocked) }},
	{TypeMessageUnblocked, "message.unblocked", KindMessage, 1, true, func() Event { return new(MessageUnblocked) }},
	{TypeMessageDiscarded, "message.discarded", KindMessage, 1, true, func() Event { return new(MessageDiscarded) }},
	{TypeMessageErased, "message.erased", KindMessage, 1, false, func() Event { return new(MessageErased) }},
	{TypeMessageSnapshotted, "message.snapshotted", KindMessage, 1, true, func() Event { return new(MessageSnapshotted) }},

	{TypeLockConfigured, "lock.configured", KindLock, 1, true, func() Event { return new(LockConfigured) }},
	{TypeLockAcquired, "lock.acquired", KindLock, 1, true, func() Event { return new(LockAcquired) }},
	{TypeLockReleased, "lock.released", KindLock, 1, true, func() Event { return new(LockReleased) }},
	{TypeLockOrphaned, "lock.orphaned", KindLock, 1, true, func() Event { return new(LockOrphaned) }},
	{TypeLockReclaimed, "lock.reclaimed", KindLock, 1, true, func() Event { return new(LockReclaimed) }},
	{TypeLockForceReleased, "lock.force_released", KindLock, 1, true, func() Event { return new(LockForceReleased) }},
	{TypeLockExpired, "lock.expired", KindLock, 1, true, func() Event { return new(LockExpired) }},
	{TypeLockRefused, "lock.refused", KindLock, 1, false, func() Event { return new(LockRefused) }},
	{TypeLockSnapshotted, "lock.snapshotted", KindLock, 1, true, func() Event { return new(LockSnapshotted) }},

	{TypeWorkerStarted, "worker.started", KindWorker, 1, true, func() Event { return new(WorkerStarted) }},
	{TypeWorkerStopped, "worker.stopped", KindWorker, 1, true, func() Event { return new(WorkerStopped) }},
	{TypeWorkerLost, "worker.lost", KindWorker, 1, true, func() Event { return new(WorkerLost) }},
	{TypeWorkerReturned, "worker.returned", KindWorker, 1, true, func() Event { return new(WorkerReturned) }},
	{TypeWorkerGap, "worker.gap", KindWorker, 1, true, func() Event { return new(WorkerGap) }},
	{TypeWorkerPurged, "worker.purged", KindWorker, 1, true, func() Event { return new(WorkerPurged) }},
	{TypeWorkerSnapshotted, "worker.snapshotted", KindWorker, 1, true, func() Event { return new(WorkerSnapshotted) }},

	{TypeTopicConfigured, "topic.configured", KindTopic, 1, true, func() Event { return new(TopicConfigured) }},
	{TypeTopicCounted, "topic.counted", KindTopic, 1, true, func() Event { return new(TopicCounted) }},
	{TypeTopicPaused, "topic.paused", KindTopic, 1, true, func() Event { return new(TopicPaused) }},
	{TypeTopicResumed, "topic.resumed", KindTopic, 1, true, func() Event { return new(TopicResumed) }},
	{TypeTopicSnapshotted, "topic.snapshotted", KindTopic, 1, true, func() Event { return new(TopicSnapshotted) }},

	{TypeLeaderElected, "leader.elected", KindLeader, 1, true, func() Event { return new(LeaderElected) }},
	{TypeLeaderResigned, "leader.resigned", KindLeader, 1, true, func() Event { return new(LeaderResigned) }},
	{TypeLeaderLost, "leader.lost", KindLeader, 1, true, func() Event { return new(LeaderLost) }},
	{TypeLeaderSnapshotted, "leader.snapshotted", KindLeader, 1, true, func() Event { return new(LeaderSnapshotted) }},

	{TypeSweepFinished, "sweep.finished", KindSweep, 1, true, func() Event { return new(SweepFinished) }},
	{TypeSweepRefused, "sweep.refused", KindSweep, 1, true, func() Event { return new(SweepRefused) }},

	{TypeClockStepped, "clock.stepped", KindClock, 1, true, func() Event { return new(ClockStepped) }},
	{TypeClockSnapshotted, "clock.snapshotted", KindClock, 1, true, func() Event { return new(ClockSnapshotted) }},
	{TypeLogPruned, "log.pruned", KindLog, 1, true, func() Event { return new(LogPruned) }},
}

// typeIndex finds a type's line by its number.
var typeIndex = func() (index [256]*typeInfo) {
	for i := range typeTable {
		index[typeTable[i].code] = &typeTable[i]
	}
	return index
}()

func (t Type) info() *typeInfo {
	if int(t) < len(typeIndex) {
		return typeIndex[t]
	}
	return nil
}

// Types lists every type of this version of Foundling, in the order of their numbers.
func Types() []Type {
	list := make([]Type, len(typeTable))
	for i, info := range typeTable {
		list[i] = info.code
	}
	return list
}

// ParseType finds a type by its name, as in "message.claimed".
func ParseType(name string) (Type, error) {
	for _, info := range typeTable {
		if info.name == name {
			return info.code, nil
		}
	}
	return 0, fmt.Errorf("event type %q: unknown to this version", name)
}

// String is the type's name, "noun.verb".
func (t Type) String() string {
	if info := t.info(); info != nil {
		return info.name
	}
	return fmt.Sprintf("unknown(%d)", uint16(t))
}

// Known reports whether this version of Foundling has the type.
func (t Type) Known() bool { return t.info() != nil }

// Kind is the lifecycle that the type belongs to; KindNone where the type is unknown.
func (t Type) Kind() Kind {
	if info := t.info(); info != nil {
		return info.kind
	}
	return KindNone
}

// Schema is the version of the stored form that is written now.
func (t Type) Schema() int {
	if info := t.info(); info != nil {
		return info.schema
	}
	return 0
}

// Moves reports whether the type moves its entity, and so takes one of its versions. A refusal does not.
func (t Type) Moves() bool {
	info := t.info()
	return info != nil && info.moves
}

// Snapshots reports whether an event of the type says all of its entity's state: a fold may begin with it, and what is older may go.
func (t Type) Snapshots() bool {
	switch t {
	case TypeMessageSnapshotted, TypeLockSnapshotted, TypeWorkerSnapshotted, TypeTopicSnapshotted, TypeLeaderSnapshotted,
		TypeClockSnapshotted, TypeLogPruned:
		return true
	}
	return false
}

// Unknown stands for a stored event whose type or schema version this program does not know. It is kept and can be printed;
// projections skip it, and a fold of its entity is refused with its type and position.
type Unknown struct {
	Code   Type
	Schema int
	Body   []byte
}

// Type is the stored number of the unknown type.
func (u *Unknown) Type() Type { return u.Code }

// VisitFields prints the stored body; an unknown event is never written.
func (u *Unknown) VisitFields(f *Fields) { f.Raw("body", &u.Body) }
