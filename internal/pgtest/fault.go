package pgtest

import "fmt"

// Action is what a Fault does to a connection.
type Action int

// The actions. A connection that is cut is closed to both sides.
const (
	CutBefore Action = iota // before any of the message has been passed on
	CutWithin               // when its first bytes have
	CutAfter                // when all of it has; the answer does not pass. A client may then ask to cancel, on a new connection
	Stall                   // before the message: nothing passes in either direction until Resume
)

// String says it for a test's name.
func (a Action) String() string {
	switch a {
	case CutBefore:
		return "cut before"
	case CutWithin:
		return "cut within"
	case CutAfter:
		return "cut after"
	case Stall:
		return "stall"
	}
	return fmt.Sprintf("Action(%d)", int(a))
}

// Fault is something that happens once, to the connection that brings about the message it waits for. To cut before the server's
// answer to COMMIT is to lose the answer to what was done:
//
//	proxy.Inject(pgtest.Fault{From: pgtest.Backend, Match: pgtest.Says("commit"), Do: pgtest.CutBefore})
type Fault struct {
	From  Side
	Match func(Message) bool // nil matches every message
	Skip  int                // how many that match pass first, over all connections
	Do    Action
	Bytes int // of CutWithin: how many of the message pass, at most all; 0 is half
}

// fault is one that waits for its message.
type fault struct {
	Fault
	left int
	hit  chan struct{} // closed when it has happened
}

// strikes tells whether the message is the one.
func (f *fault) strikes(m Message) bool {
	if f.From != m.From || f.Match != nil && !f.Match(m) {
		return false
	}
	f.left--
	return f.left < 0
}

// passes is how many bytes of a message the fault lets through.
func (f *fault) passes(length int) int {
	switch {
	case f.Do == CutAfter:
		return length
	case f.Do == CutWithin && f.Bytes == 0:
		return length / 2
	case f.Do == CutWithin:
		return min(f.Bytes, length)
	}
	return 0
}
