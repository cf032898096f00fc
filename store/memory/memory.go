package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
	"github.com/tidwall/btree"
)

// Options are the store's settings. The zero value works.
type Options struct {
	Clock func() time.Time // the store's time; nil is time.Now
	ID    events.ID        // the store's own id; zero is a random one
}

// Store is a store.Store in memory. Every call holds one mutex, so commits happen one after the other.
type Store struct {
	clock func() time.Time
	id    events.ID

	mu       sync.Mutex
	closed   bool
	log      []entry // log[i] has position through+i+1
	streams  map[events.Entity][]int64
	commits  map[store.CommitID]int64 // the position of a commit's first event, up to through of one that was pruned; 0 was given up
	rows     map[events.Entity]store.Row
	placed   map[events.Entity]int64 // of messages that have a row: the position of the first event, whether it is kept or not
	contents map[events.ID]store.Contents
	keys     *keys
	permits  *permits
	beats    map[events.ID]store.Beat
	leases   map[string]store.Lease
	waits    map[string]map[wait]*btree.BTreeG[store.Row] // by lock, then topic
	queued   map[level]*btree.BTreeG[store.Row]           // due order
	running  map[events.Entity]*btree.BTreeG[store.Row]   // by worker and by topic, in order of their claims
	watchers map[*watcher]struct{}
	shelf    map[shelf][]store.Checkpoint // by sequence

	pruned
}

// entry is an event of the log with the stored form of its commit.
type entry struct {
	stored events.Stored
	commit *events.StoredCommit
}

// level is one range of claimable messages.
type level struct {
	topic    string
	priority events.Priority
}

// New makes an empty store.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.ID == (events.ID{}) {
		o.ID = uuid.New()
	}
	return &Store{
		clock: o.Clock, id: o.ID,
		streams: map[events.Entity][]int64{}, commits: map[store.CommitID]int64{},
		rows: map[events.Entity]store.Row{}, placed: map[events.Entity]int64{}, contents: map[events.ID]store.Contents{}, keys: newKeys(),
		shelf: map[shelf][]store.Checkpoint{}, pruned: pruned{told: map[events.Entity]int64{}, topics: map[events.ID]string{}},
		permits: newPermits(), beats: map[events.ID]store.Beat{}, leases: map[string]store.Lease{},
		waits: map[string]map[wait]*btree.BTreeG[store.Row]{}, queued: map[level]*btree.BTreeG[store.Row]{},
		running: map[events.Entity]*btree.BTreeG[store.Row]{}, watchers: map[*watcher]struct{}{},
	}
}

// enter locks the store for a call that may go on.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	err := ctx.Err() // it may have ended while others had their turn
	if s.closed {
		err = store.ErrClosed
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Now implements store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	return s.now(), nil
}

// Close implements store.Store. What the store held is gone with its last user.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Decide implements store.Store.
func (s *Store) Decide(ctx context.Context, calls ...store.Call) ([]store.Receipt, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("memory: decide: %w", err)
	}
	defer s.mu.Unlock()
	receipts := make([]store.Receipt, len(calls))
	for i, call := range calls {
		receipts[i] = s.decide(call)
	}
	return receipts, nil
}

func (s *Store) decide(call store.Call) store.Receipt {
	now := s.now()
	if first, used := s.commits[call.ID]; used {
		receipt, err := s.receipt(call.ID, first)
		receipt.Err = err
		return receipt
	}
	refused := store.Receipt{ID: call.ID}
	if refused.Err = s.checkID(call.ID, now); refused.Err != nil {
		return refused
	}
	view, err := s.view(call.Need, now)
	if err != nil {
		refused.Err = err
		return refused
	}
	changes, err := call.Run(view)
	if err == nil {
		err = changes.Check()
	}
	if err == nil {
		err = s.check(changes)
	}
	if err != nil || changes.Empty() {
		refused.Err = err
		return refused
	}
	return s.keep(call, view, changes)
}

// check makes sure that the changes stand on what the store has. That they do not is a fault of the engine or of Fn.
func (s *Store) check(changes store.Changes) error {
	for i := range changes.Rows {
		change := &changes.Rows[i]
		if version := s.version(change.Row.Entity); version != change.From {
			return fmt.Errorf("memory: change of %s from version %d, it has %d", change.Row.Entity, change.From, version)
		}
	}
	for _, count := range changes.Counts {
		if _, ok := s.rows[events.TopicEntity(count.Topic)]; !ok {
			return fmt.Errorf("memory: count of topic %q: it has no row", count.Topic)
		}
	}
	for _, change := range changes.Permits {
		if _, out := s.permits.byKey[change.Permit.PermitKey]; out != change.Back {
			return fmt.Errorf("memory: permit %d of lock %q: out is %t", change.Permit.Token, change.Permit.Lock, out)
		}
	}
	return nil
}

// version is the entity's version by its row or, where it has none, by its events.
func (s *Store) version(entity events.Entity) int {
	if row, ok := s.rows[entity]; ok {
		return row.Version
	}
	if position := s.moved(entity); position > 0 {
		return s.at(position).stored.Version
	}
	return 0
}

// keep commits what a call decided.
func (s *Store) keep(call store.Call, view store.View, changes store.Changes) store.Receipt {
	recording := store.Record(call, changes, view.Now)
	recording.Place(s.head() + 1)
	for _, stored := range recording.Stored {
		s.log = append(s.log, entry{stored, &recording.Commit})
		s.streams[stored.Entity] = append(s.streams[stored.Entity], stored.Position)
		if stored.Type.Snapshots() {
			s.told[stored.Entity] = stored.Position
		}
	}
	s.commits[call.ID] = recording.Stored[0].Position
	receipt := store.Receipt{ID: call.ID, Events: recording.Events}
	for _, change := range changes.Rows {
		s.put(change)
	}
	for _, count := range changes.Counts {
		topic := events.TopicEntity(count.Topic)
		row := s.rows[topic]
		row.Running += count.Delta
		s.rows[topic] = row
	}
	for _, change := range changes.Permits {
		s.permits.change(change)
	}
	if changes.Wakes() {
		s.hint()
	}
	for _, change := range changes.Keys {
		s.keys.change(change)
	}
	for _, erasure := range changes.Erase {
		delete(s.contents, erasure.Message)
	}
	if changes.Prune > 0 {
		s.prune(changes.Prune, view.Now)
	}
	for _, change := range changes.Rows {
		if !change.Gone {
			receipt.Rows = append(receipt.Rows, given(s.withPayload(s.rows[change.Row.Entity])))
		}
	}
	return receipt
}

// put replaces an entity's row.
func (s *Store) put(change store.Change) {
	row := change.Row
	old, existed := s.rows[row.Entity]
	if existed {
		s.unindex(old)
	}
	s.fill(change)
	if change.Gone {
		delete(s.rows, row.Entity)
		delete(s.placed, row.Entity)
		return
	}
	if !existed && row.Entity.Kind == events.KindMessage {
		s.placed[row.Entity] = s.streams[row.Entity][0]
	}
	row.Running, row.Fields, row.Payload = old.Running, bytes.Clone(row.Fields), nil
	s.rows[row.Entity] = row
	s.index(row)
}

// given is a kept row for a caller, who then owns it.
func given(row store.Row) store.Row {
	row.Fields, row.Payload = bytes.Clone(row.Fields), own(row.Payload)
	return row
}

// receipt is that of an earlier commit.
func (s *Store) receipt(id store.CommitID, first int64) (store.Receipt, error) {
	if first == 0 {
		return store.Receipt{ID: id}, fmt.Errorf("commit %s: %w", id, store.ErrVoid)
	}
	if first <= s.through {
		return store.Receipt{ID: id}, fmt.Errorf("commit %s: its events are kept no more: %w", id, store.ErrPruned)
	}
	list, err := s.decode(first, s.at(first).commit.Count)
	return store.Receipt{ID: id, Events: list}, err
}

// Outcome implements store.Store.
func (s *Store) Outcome(ctx context.Context, id store.CommitID) (store.Receipt, bool, error) {
	if err := s.enter(ctx); err != nil {
		return store.Receipt{}, false, fmt.Errorf("memory: outcome: %w", err)
	}
	defer s.mu.Unlock()
	first, used := s.commits[id]
	if used && first > 0 {
		receipt, err := s.receipt(id, first)
		if errors.Is(err, store.ErrPruned) {
			receipt.Err, err = err, nil
		}
		return receipt, err == nil, err
	}
	if err := s.checkID(id, s.now()); err != nil {
		return store.Receipt{ID: id}, false, err
	}
	if !used {
		s.commits[id] = 0
		s.retired = append(s.retired, id)
	}
	return store.Receipt{ID: id}, false, nil
}
