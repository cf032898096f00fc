package store

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
)

// CommitID names a commit: a UUIDv7 that the caller mints. The same id twice has one effect.
type CommitID = events.ID

// The classes of errors that callers branch on.
var (
	// ErrUnknown says that the store cannot tell whether the commit happened: the answer was lost. [Store.Outcome] settles it.
	ErrUnknown = errors.New("outcome unknown")
	// ErrExpired says that a commit id is older than the horizon for which ids are kept, so that it can no longer be told whether it
	// was used. Nothing was done.
	ErrExpired = errors.New("commit id is older than the horizon")
	// ErrVoid says that a commit id was made unusable by Outcome before it was used. Nothing was done.
	ErrVoid = errors.New("commit id was given up")
	// ErrTooLarge says that a call or one of its parts is over a bound. Nothing was done.
	ErrTooLarge = errors.New("too large")
	// ErrForeign says that what was opened is not a store of Foundling, or is damaged beyond reading.
	ErrForeign = errors.New("not a foundling store")
	// ErrNewer says that a newer version of Foundling wrote the store.
	ErrNewer = errors.New("store was written by a newer version")
	// ErrFull says that the disk or quota is full. Nothing was kept; everything goes on once there is room.
	ErrFull = errors.New("no room in the store")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrNoProof says that this engine, or the place its files lie in, cannot prove that a process has ended.
	ErrNoProof = errors.New("no proof of death to be had")
	// ErrPruned says that what was asked for was let go by retention. See PrunedError.
	ErrPruned = errors.New("pruned")
	// ErrCursor says that a cursor is none of this store: another's, or no cursor at all.
	ErrCursor = errors.New("not a cursor of this store")
	// ErrAhead says that a cursor lies behind the end of the log, as after a backup was restored: what it has seen is not there.
	ErrAhead = errors.New("cursor is ahead of the log")
	// ErrMoved says that a checkpoint does not follow the newest one: somebody else was faster.
	ErrMoved = errors.New("checkpoint has moved")
	// ErrNotBeating says that a heartbeat found no row to renew: the incarnation is over, and its process starts a new one.
	ErrNotBeating = errors.New("heartbeat found no row")
)

// Bounds that every engine keeps.
const (
	// Horizon is how long commit ids are kept.
	Horizon = 24 * time.Hour
	// MaxEvents is how many events a commit may have.
	MaxEvents = 10_000
	// MaxPayload is the largest payload that an engine must take, in bytes.
	MaxPayload = 16 << 20
	// MaxResult is the largest result that an engine must take, in bytes.
	MaxResult = 64 << 10
	// MaxName is the longest name of a topic, a lock or whatever else is named, and of a key, in bytes.
	MaxName = 200
)

// Store keeps events and rows. All methods may be called from many goroutines.
type Store interface {
	// Decide runs the calls, in order. For each it holds what Need names, gives that to Fn with the store's time, and keeps what Fn
	// returns: all of a call or nothing of it, under its own id. Calls may share a transaction of the engine. A later call sees what
	// earlier ones changed. A refused call is a Receipt with Err set and stops no other. An error of Decide itself is the store's:
	// nothing was committed, or it is ErrUnknown.
	//
	// It blocks while other writers have their turn. A ctx that ends before the commit began withdraws the calls; the commit itself is
	// never cancelled. The engine keeps no slice of the calls, and the caller owns what is returned.
	Decide(ctx context.Context, calls ...Call) ([]Receipt, error)

	// Outcome settles a commit id after ErrUnknown: its receipt and true where it was committed. Where the id is unused it first makes
	// it unusable, waiting for a commit still in flight, so that false is final: what arrives later fails with ErrVoid. That of a commit which
	// was pruned since is true, with the receipt that Decide would give.
	Outcome(ctx context.Context, id CommitID) (Receipt, bool, error)

	// Read yields recorded events behind a cursor, in an order that never changes: no gaps, nothing uncommitted, nothing late. It ends
	// at the head. It pages: nothing is held while the caller's loop body runs. Stored bytes that are not what was written are a
	// *events.Corrupt, which ends it. A cursor before the oldest kept event is a *PrunedError, never a silent skip: that is so for the zero as
	// well once something was pruned. One behind the end of the log is ErrAhead, one of another store ErrCursor.
	Read(ctx context.Context, after Cursor, f Filter) iter.Seq2[events.Recorded, error]

	// After is the cursor behind an event that this store gave.
	After(r events.Recorded) Cursor

	// Head is the cursor behind the newest event.
	Head(ctx context.Context) (Cursor, error)

	// Rows yields the kept rows that pass the filter, by kind, then id or name. It pages like Read: a row that moves meanwhile is seen
	// at one of its versions, and one that comes or goes may be missed. A row that is not what was written is a *events.Corrupt that names
	// its entity, and the rows behind it follow; one without an entity tells that it cannot be read any further.
	Rows(ctx context.Context, f RowFilter) iter.Seq2[Row, error]

	// Permits yields the permits that are out and pass the filter, by lock, then token. It pages like Rows.
	Permits(ctx context.Context, f PermitFilter) iter.Seq2[Permit, error]

	// Contents is the bytes that are kept of a message, whether it is open or has ended: both nil where it is not known. Where its beginning was
	// let go they come with its topic.
	Contents(ctx context.Context, message events.ID) (Contents, error)

	// Now is the store's time, in whole microseconds.
	Now(ctx context.Context) (time.Time, error)

	// Close waits for the commit in flight and lets go of everything. A second call does nothing.
	Close() error
}

// Call is one commit to be.
type Call struct {
	ID      CommitID
	Command events.Command // recorded with the commit, so that it can be decided again
	Need    Need
	// Fn decides. It is pure: it may run again, and only the last run counts. An error refuses the call.
	Fn func(View) (Changes, error)
}

// Need names what a call's Fn must see. What it names twice is given once.
type Need struct {
	Held      []events.Entity // rows, or the history of what has no row; of what rests (see events.Kind) the newest event that moved it, alone
	Known     []Row           // rows from an earlier receipt: an engine may give them to Fn unread where the version still stands
	Claim     []Page          // per topic: its row and up to N messages that are queued and due, by priority, due time and place of enqueueing
	Claims    []Holder        // per worker: up to N of its open claims, oldest first, and up to N of its permits, oldest first, then the lower token
	Uncounted []Page          // per topic: its row and up to N open claims that do not count towards its limit
	Keys      []Key

	// Locks are held as entities are, and with each, read after its row is held, who waits for it: per topic the first message that is
	// blocked and the first that is trying, by priority, then place of enqueueing.
	Locks   []string
	Permits []PermitKey // those of them that are out
	Holders []LockPage  // per lock: up to N of its permits, those that expire first, then the oldest; of equal ones the lower token
	Beats   []events.ID // the newest heartbeats of these incarnations, where the engine keeps any
	Prune   Prunable    // of a Pruner alone; every other engine refuses the call
	Staged  []int64     // places of what is staged, of a Stager alone; for every other engine nothing is there

	// What comes with the others unasked. With each claimable message: its lock, and where the message is trying, who waits for that lock.
	// With Claims: the permits of those claims, the locks of all these permits as Locks gives them, and the worker's heartbeat.
}

// LockPage asks for up to N permits of a lock.
type LockPage struct {
	Lock string
	N    int
}

// Page asks for up to N rows of a topic.
type Page struct {
	Topic string
	N     int
}

// Holder asks for up to N open claims of a worker.
type Holder struct {
	Worker events.ID
	N      int
}

// Key is a name that a caller gave a message, unique within its topic.
type Key struct {
	Topic string
	Name  string
}

// KeyRow is who has a key.
type KeyRow struct {
	Message events.ID
	Open    bool
	UntilAt time.Time
}

// View is what an engine holds for a call, at one time.
type View struct {
	// Now is the store's time after the last row was held, in whole microseconds. For a call that makes the engine read nothing it may
	// be an earlier time of the store: a lower bound.
	Now       time.Time
	Rows      map[events.Entity]Row
	History   map[events.Entity][]events.Recorded // of held entities without a row that the log knows
	Claimable map[string][]Row                    // with payloads
	Claims    map[events.ID][]Row
	Uncounted map[string][]Row
	Keys      map[Key]KeyRow
	Waiting   map[string][]Row // by lock, in no order, without payloads
	Permits   []Permit         // all that were asked for, in no order, each once
	Beats     map[events.ID]Beat
	Pruning   Pruning
	Staged    map[int64]bool // places of what is still staged, and held; who else is about to move it is not waited for
	// PrunedAt is the latest time at which a commit that was pruned was decided, or when it was pruned where that was earlier; zero while none was.
	PrunedAt time.Time

	// Fence is a number higher than every token of a permit that the store ever kept. From it on a call may give one to each permit it takes.
	// It is there for calls that hold a lock.
	Fence events.Token
}

// PermitKey names a permit: tokens of a lock are never used twice.
type PermitKey struct {
	Lock  string
	Token events.Token
}

// Permit is one of a lock's permits that is out. A lock's row does not grow with their number.
type Permit struct {
	PermitKey
	Worker     events.ID
	Message    events.ID // whose claim took it; zero where it is held without a message
	AcquiredAt time.Time
	ExpiresAt  time.Time // zero where it has no end
}

// PermitFilter selects permits. Its zero passes all.
type PermitFilter struct {
	Lock      string    // of this lock alone, unless empty
	Worker    events.ID // of this worker alone, unless zero: an index read
	ExpiredAt time.Time // those alone that expire then or have before, unless zero: an index read
}

// Row is an entity's state as an engine keeps it. Fields is opaque to the engine; the columns are what it may select and order by.
type Row struct {
	Entity  events.Entity
	Version int
	State   events.State // a word for people
	Fields  []byte       // canonical JSON

	// Of messages.
	Topic     string
	Priority  events.Priority
	DueAt     time.Time // set while the message is queued: claimable from then on
	Worker    events.ID // set while a claim is open
	ClaimedAt time.Time
	Counted   bool
	Lock      string       // that its claim takes
	LockToken events.Token // of the permit that its open claim took
	Waiting   Waiting
	Payload   *Payload // given with claimable rows and where a filter asks for it

	// Of topics: open counted claims. The engine adds to it what Changes.Counts says, and nobody else writes it.
	Running int
}

// Waiting says whether a message waits for its lock.
type Waiting uint8

// The zero does not wait.
const (
	NotWaiting Waiting = 0
	Blocked    Waiting = 1 // its lock was taken at its turn
	Trying     Waiting = 2 // it is queued again since its lock may be free, and has not tried yet
)

// Payload is the bytes of a message, kept beside its enqueued event so that they can be erased.
type Payload struct {
	Salt  [16]byte
	Bytes []byte
}

// Changes is what a call's Fn wants kept.
type Changes struct {
	Rows    []Change
	Counts  []Count
	Keys    []KeyChange
	Permits []PermitChange
	Prune   int64     // every event at or before this position goes, as Pruning said, with the contents of the messages that ended there; 0 is none
	Erase   []Erasure // the contents of these go, whatever else is kept of them
	Unstage []int64   // places of View.Staged: what is staged there goes, since the events of the call tell of it
}

// Empty reports whether nothing is to be kept. Such a call leaves nothing behind, not even its commit id.
func (c Changes) Empty() bool {
	return len(c.Rows) == 0 && len(c.Counts) == 0 && len(c.Keys) == 0 && len(c.Permits) == 0 && c.Prune == 0 && len(c.Erase) == 0 &&
		len(c.Unstage) == 0
}

// Wakes reports whether something may be claimable after the changes that was not before: what a [Waiter] sends hints for.
func (c Changes) Wakes() bool { return len(c.Woken(nil)) > 0 }

// Woken adds to a list the topics of what may be claimable after the changes and was not before, each once.
func (c Changes) Woken(list []string) []string {
	put := func(topic string) {
		if n := len(list); n == 0 || list[n-1] != topic && !slices.Contains(list, topic) {
			list = append(list, topic)
		}
	}
	for i := range c.Rows {
		switch row := &c.Rows[i].Row; {
		case !row.DueAt.IsZero():
			put(row.Topic)
		case row.Entity.Kind == events.KindTopic:
			put(row.Entity.Name)
		}
	}
	for _, count := range c.Counts {
		if count.Delta < 0 {
			put(count.Topic)
		}
	}
	return list
}

// Change is one entity's part of a commit.
type Change struct {
	Row         Row  // after it
	Gone        bool // no row is kept any more
	From        int  // the version the decision saw; 0 for a new entity
	Transitions []events.Transition
	Payload     *Payload // of a message that is new
	Result      *Payload // of a message that completes: kept for as long as the event that says so
}

// Count is what is added to a topic's running count.
type Count struct {
	Topic string
	Delta int
}

// KeyChange gives a key to a holder, or lets it go where the holder is zero.
type KeyChange struct {
	Key Key
	Row KeyRow
}

// PermitChange gives a permit out, or takes it back. One that is given out twice, or taken back when it is not out, is a fault of Fn, and so is
// one that stands twice in a call. Each that is given out has an event of its own in the call, so that View.Fence may go by positions.
type PermitChange struct {
	Permit Permit
	Back   bool
}

// Receipt is what became of a call. It is derived from the commit's events, so that one asked for again is the same; only Rows is
// there at the first answer alone.
type Receipt struct {
	ID     CommitID
	Err    error             // the call was refused by its Fn, or by its id (ErrExpired, ErrVoid, ErrPruned)
	Events []events.Recorded // in order; empty where nothing changed
	Rows   []Row             // kept rows after the commit, claimed ones with their payloads
}

// Filter selects events. Its zero passes all.
type Filter struct {
	Entity events.Entity // of this entity alone, unless zero
	Types  []events.Type // of these types alone, unless empty
	Limit  int           // at most so many, unless 0
}

// RowFilter selects rows. Its zero passes all.
type RowFilter struct {
	States   []events.State  // in one of these alone, unless empty
	Lock     string          // messages that take this lock alone, unless empty
	Key      Key             // the message alone that has this key, unless zero: an index read
	After    events.Entity   // behind this one in the order in which rows come, unless zero: for pages
	Limit    int             // at most so many, unless 0
	Order    Order           // of rows within a kind; the zero is by id or name
	Kind     events.Kind     // of this kind alone, unless KindNone
	Entities []events.Entity // these alone, unless empty
	Topic    string          // messages of this topic alone, unless empty
	Worker   events.ID       // open claims of this worker alone, unless zero: an index read
	Select   Selection       // unless All, which messages, by an index that skips the others; only Kind and Payloads stand beside it
	Payloads bool            // give payloads with messages
}

// Order is the order in which rows of a kind come.
type Order uint8

// The zero rises.
const (
	Rising  Order = 0
	Falling Order = 1 // the highest id or name first: of minted messages the newest
)

// Selection is one message for each of something: what a walk over all of them would cost too much to find.
type Selection uint8

// The zero selects nothing in particular.
const (
	All         Selection = 0
	FirstClaims Selection = 1 // of every worker that has an open claim, the oldest of them
	FirstWaits  Selection = 2 // of every lock and topic that has blocked messages, the first of them by priority, then place of enqueueing
)

// Waiter is offered by engines that can say early that there may be something to claim. It is a hint: polling is the truth.
type Waiter interface {
	// Watch sends on the channel, without ever blocking, after commits that may have made messages of the topics claimable. Hints that
	// nobody took are one. stop ends it and closes nothing.
	Watch(topics []string) (hints <-chan struct{}, stop func())
}

// ProcessWatcher is offered by engines whose workers all live on one machine, where the kernel can prove that a process has ended.
type ProcessWatcher interface {
	// Attest holds the proof of life of an incarnation of this process until it is let go or the process ends, however it ends. It
	// must be held before the incarnation is made known. ErrNoProof where that is not to be had.
	Attest(ctx context.Context, worker events.ID) (release func() error, err error)
	// Gone reports which of the incarnations are proven to have ended. One that never was attested, or whose proof is out of reach, is
	// not among them. What was gone once stays so while its worker has a row; the proof is forgotten with the row. Each is judged by itself:
	// an error tells of those that could not be judged, and those that are listed beside it are proven all the same.
	Gone(ctx context.Context, workers ...events.ID) ([]events.ID, error)
}

// Heart is offered by engines that keep heartbeats: a small row per incarnation, written past the queue of commits.
type Heart interface {
	// Beat says that the incarnation lives and gives the store's time of saying so. The first beat makes its row; a later one that
	// finds none is ErrNotBeating, and so is one of an incarnation whose proof of life was taken away (see ProcessWatcher).
	Beat(ctx context.Context, b Beat) (time.Time, error)
	// Beats lists the newest beat of every incarnation that has a row. Each is read by itself: an error tells of those that are not what was
	// written (a *events.Corrupt that names the worker), and those listed beside it are as they were written.
	Beats(ctx context.Context) ([]Beat, error)
	// Still takes the row of an incarnation that has stopped.
	Still(ctx context.Context, worker events.ID) error
}

// Beat is an incarnation's heartbeat.
type Beat struct {
	Worker   events.ID
	First    bool
	Interval time.Duration // what it intends
	// FenceAfter is how long after its last confirmed heartbeat it ends its handlers' contexts by itself.
	FenceAfter time.Duration
	At         time.Time // set by the store
}

// Leaser is offered by engines that keep leases: a small row, written past the queue of commits, and no event.
type Leaser interface {
	// Lease holds the lease of a name, gives turn the lease as it is (its zero where nobody ever had it) with the store's time, and keeps
	// what turn returns, which it returns too. turn is pure and may run again. An error says that nothing is certain: whoever asked does
	// not hold it.
	Lease(ctx context.Context, name string, turn func(Lease, time.Time) Lease) (Lease, error)
}

// Lease is a right that one incarnation has until a time. No engine interprets it. It is kept in whole microseconds.
type Lease struct {
	Holder  events.ID
	Term    int
	UntilAt time.Time
	Life    time.Duration
	SweptAt time.Time
}
