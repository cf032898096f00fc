package projections

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
)

// This file reads what a snapshot tells: the state of an entity whose history went, as package fsm gives it to a store. What a fold has no use
// for is passed over, so that a field more is no fault.

// micros is an instant in whole microseconds since 1970; 0 is none.
type micros int64

func (m micros) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

func microsOf(t time.Time) micros {
	if t.IsZero() {
		return 0
	}
	return micros(t.UnixMicro())
}

// span is a length of time in whole microseconds.
type span int64

func (s span) duration() time.Duration { return time.Duration(s) * time.Microsecond }

// told is the fields of a snapshot, or false where they are not what this version can read.
func told[T any](s events.Snapshot) (fields T, ok bool) {
	err := json.Unmarshal(s.State, &fields)
	return fields, err == nil
}

// messageFields is what a snapshot tells of a message.
type messageFields struct {
	Topic     string       `json:"topic"`
	Enqueued  micros       `json:"enqueued"`
	Due       micros       `json:"due"`
	Lock      string       `json:"lock"`
	Trying    int          `json:"trying"`
	Attempts  int          `json:"attempts"`
	Worker    events.ID    `json:"worker"`
	Token     events.Token `json:"token"`
	Claimed   micros       `json:"claimed"`
	Counted   int          `json:"counted"`
	LockToken events.Token `json:"lock_token"`
}

func toldMessage(e *events.MessageSnapshotted) (messageFields, bool) {
	return told[messageFields](e.Snapshot)
}

// claim is the open claim of a message whose snapshot is r: its place is that of the snapshot, its time its own.
func (m messageFields) claim(r events.Recorded) Claim {
	return Claim{
		Mark: Mark{r.Position, m.Claimed.time()}, Message: r.Entity.ID, Worker: m.Worker, Token: m.Token, Attempt: m.Attempts,
		Counted: m.Counted != 0, LockToken: m.LockToken,
	}
}

// topicFields is what a snapshot tells of a topic.
type topicFields struct {
	Limit    int `json:"limit"`
	Counting int `json:"counting"`
}

// lockFields is what a snapshot tells of a lock, beside its permits.
type lockFields struct {
	Permits int `json:"permits"`
	Held    int `json:"held"`
}

// leaderFields is what a snapshot tells of a leadership.
type leaderFields struct {
	Worker events.ID `json:"worker"`
	Term   int       `json:"term"`
}

// clockFields is what a snapshot tells of the clock's last step.
type clockFields struct {
	Step micros `json:"step"`
	From micros `json:"from"`
	To   micros `json:"to"`
}

// workerFields is what a snapshot tells of a worker.
type workerFields struct {
	Started           micros   `json:"started"`
	Lost              micros   `json:"lost"`
	Host              string   `json:"host"`
	PID               int      `json:"pid"`
	Program           string   `json:"program"`
	Topics            []string `json:"topics"`
	Concurrency       int      `json:"concurrency"`
	HeartbeatInterval span     `json:"heartbeat_interval"`
	Proof             int      `json:"proof"`
	FenceAfter        span     `json:"fence_after"`
	Limits            string   `json:"limits"` // whole numbers with commas between
}

func (w workerFields) limits() []int {
	var list []int
	for word := range strings.SplitSeq(w.Limits, ",") {
		if n, err := strconv.Atoi(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}
