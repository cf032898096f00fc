package events

import "time"

// Evidence is why a worker was held to be gone: what the one who decided it knew. Later changes of settings do not rewrite it.
type Evidence struct {
	Reason     Reason        // process_gone, silent or no_heartbeat
	Claimer    ID            // the worker's incarnation
	LastBeatAt time.Time     // its last heartbeat that the store confirmed; zero if it never had one
	Age        time.Duration // how old that was when it was judged; 0 for process_gone
	Interval   time.Duration // of the claimer's heartbeats, as its heartbeat row says
	FenceAfter time.Duration // when the claimer was to stop by itself, as its heartbeat row says
	Decider    ID            // the incarnation that looked; zero is a command line without one
	Sweep      ID            // the sweep that it was decided in; zero is none
	Term       int           // of the leader who swept; 0 where somebody asked for the sweep
	After      time.Duration // orphan_reclaim_after in force
	Grace      time.Duration // orphan_claim_grace in force
	Limit      int           // orphan_max_attempts in force
	Count      OrphanCount   // what that limit reads
}

func (e *Evidence) visit(f *Fields) {
	f.Reason("evidence", &e.Reason)
	f.ID("claimer", &e.Claimer)
	f.Time("last_beat", &e.LastBeatAt)
	f.Duration("age", &e.Age)
	f.Duration("interval", &e.Interval)
	f.Duration("fence_after", &e.FenceAfter)
	f.ID("decider", &e.Decider)
	f.ID("sweep", &e.Sweep)
	f.Int("term", &e.Term)
	f.Duration("after", &e.After)
	f.Duration("grace", &e.Grace)
	f.Int("orphan_max_attempts", &e.Limit)
	e.Count.visit(f)
}

// OrphanCount says what orphan_max_attempts reads.
type OrphanCount uint8

// The zero counts every claim.
const (
	CountClaims     OrphanCount = 0 // spent attempts, whatever became of them
	CountOrphanings OrphanCount = 1 // only the times that a message was orphaned
)

// String is the word of the setting orphan_count.
func (c OrphanCount) String() string {
	if c == CountOrphanings {
		return "orphanings"
	}
	return "claims"
}

// visit names it as a field, kept as its word; claims is left out.
func (c *OrphanCount) visit(f *Fields) {
	var word string
	if f.walk != reading && *c != CountClaims {
		word = c.String()
	}
	f.Text("orphan_count", &word)
	if f.walk != reading {
		return
	}
	switch word {
	case "":
		*c = CountClaims
	case CountOrphanings.String():
		*c = CountOrphanings
	default:
		f.fail("field orphan_count: %q is not a canonical count", cut([]byte(word)))
	}
}

// EvidenceOf is by what an event says that somebody was held to be dead; false where it says nothing of that.
func EvidenceOf(event Event) (Evidence, bool) {
	switch e := event.(type) {
	case *WorkerLost:
		return e.Evidence, true
	case *MessageOrphaned:
		return e.Evidence, true
	case *LockOrphaned:
		return e.Evidence, true
	}
	return Evidence{}, false
}
