package sqlite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

// A store whose retention is a minute is as large as what a minute leaves, however much has passed through it.
func TestFileStaysFlatWhileMessagesPass(t *testing.T) {
	flat(t, stream{messages: 20_000, each: 1500 * time.Millisecond, verified: 4})
}

func TestFileStaysFlatOverAMillionMessages(t *testing.T) {
	if os.Getenv("FOUNDLING_LONG") == "" {
		t.Skip("it takes minutes: set FOUNDLING_LONG")
	}
	flat(t, stream{messages: 1_000_000, each: 60 * time.Millisecond, verified: 10})
}

const (
	streamBatch     = 100
	streamKeyed     = 10 // of a batch
	streamLocked    = 3
	streamRetention = time.Minute
	pruneEvents     = 5000
	// perMessage is what a message may take while it and its events are kept, and aside what the store takes of itself: what is free, the
	// write-ahead log and the messages that stay.
	perMessage = 1200
	aside      = 12 << 20
)

// stream is messages that pass through a store.
type stream struct {
	messages int
	each     time.Duration // of the store's time that a batch takes
	verified int           // how often the laws are checked
}

// passing is a stream that has begun.
type passing struct {
	*sqlite.Store
	path  string
	now   time.Time
	sizes []int64 // of the file, after each prune
	most  int64   // of the file and its write-ahead log, which is bounded and not flat
}

// flat lets a stream pass, prunes what is older than the retention as it goes, and ends the test unless the files stay as large as they are.
func flat(t *testing.T, st stream) {
	p := &passing{path: filepath.Join(t.TempDir(), "store.db"), now: time.Now().UTC().Truncate(time.Millisecond)}
	p.Store = open(t, p.path, sqlite.Options{Clock: func() time.Time { return p.now }, Synchronous: sqlite.SynchronousNormal})
	p.commit(t, calls.OperateWorker(p.origin(), fsm.OperateWorker{Worker: worker, Command: fsm.StartWorker{}}))
	p.enqueue(t, 50, fsm.EnqueueMessage{Topic: "later", Delay: 24 * time.Hour, Key: "later", Lock: "later"}) // which stay
	batches := st.messages / streamBatch
	full := int(streamRetention/st.each) + 1 // the batches of a minute
	for i := range batches {
		p.pass(t, i)
		p.now = p.now.Add(st.each)
		if i%10 == 9 {
			p.prune(t)
			p.measure(t)
		}
		if i%(batches/st.verified) == batches/st.verified-1 {
			clean(t, p.Store)
			folded(t, p.Store)
		}
	}
	first, last := slices.Max(p.sizes[:len(p.sizes)/2]), slices.Max(p.sizes[len(p.sizes)/2:])
	bound := int64(full*streamBatch*perMessage + aside)
	t.Logf("%d messages, of which %d in a minute: at most %d bytes in the first half, %d in the second, %d with the write-ahead log; bound %d",
		st.messages, full*streamBatch, first, last, p.most, bound)
	if last > first+first/10 || p.most > bound {
		t.Errorf("at most %d bytes in the first half, %d in the second, want a tenth more at most; %d with the write-ahead log, want at most %d",
			first, last, p.most, bound)
	}
	p.rests(t, full)
}

// rests ends the test unless no more is left than a minute's messages leave, and all of that.
func (p *passing) rests(t *testing.T, full int) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	db := raw(t, p.path)
	for what, query := range beginning {
		if got := one(t, db, query); got != "0" {
			t.Errorf("%s: %s", what, got)
		}
	}
	few := (full + 20) * streamBatch
	for query, bound := range map[string]int{
		"SELECT count(*) FROM payloads": few, "SELECT count(*) FROM results": few, "SELECT count(*) FROM keys": few, "SELECT count(*) FROM places": few,
		"SELECT count(*) FROM events": 5 * few, "SELECT count(*) FROM commits": few, "SELECT count(*) FROM snapshots": few, "SELECT count(*) FROM messages": 60,
	} {
		var n int
		if err := db.QueryRow(query).Scan(&n); err != nil || n > bound {
			t.Errorf("%s: %d, %v, want at most %d", query, n, err, bound)
		}
	}
}

// id is minted by the store's clock.
func (p *passing) id() events.ID {
	call := mintedAt(p.now, store.Call{ID: uuid.Must(uuid.NewV7())})
	return call.ID
}

func (p *passing) origin() calls.Origin { return calls.Origin{ID: p.id(), Actor: worker.String()} }

func (p *passing) commit(t *testing.T, call store.Call) store.Receipt {
	t.Helper()
	return commit(t, p.Store, call)
}

func (p *passing) enqueue(t *testing.T, n int, m fsm.EnqueueMessage) {
	t.Helper()
	c := fsm.Enqueue{Topics: map[string]fsm.TopicStart{m.Topic: {}}}
	payloads := make([]store.Payload, n)
	for i := range payloads {
		id := p.id()
		payloads[i] = store.Payload{Salt: id, Bytes: fmt.Appendf(nil, `{"to":"somebody","number":%d,"note":"a payload of some length"}`, i)}
		draft := m
		draft.Payload = events.Facts{Size: len(payloads[i].Bytes), Commitment: events.Commitment(payloads[i].Salt, payloads[i].Bytes)}
		if m.Key != "" {
			draft.Key = id.String()
		}
		c.Drafts = append(c.Drafts, fsm.Draft{ID: id, EnqueueMessage: draft})
	}
	call, _ := calls.Enqueue(p.origin(), c, payloads)
	p.commit(t, call)
}

// pass lets one batch live: most as they come, some with a key that outlives them and in every other batch alone, a few with a lock, one after the
// other.
func (p *passing) pass(t *testing.T, i int) {
	t.Helper()
	p.enqueue(t, streamBatch-streamKeyed-streamLocked, fsm.EnqueueMessage{Topic: "mail"})
	p.enqueue(t, streamKeyed, fsm.EnqueueMessage{Topic: "keyed", Key: "k", UniqueFor: 10 * time.Second})
	p.enqueue(t, streamLocked, fsm.EnqueueMessage{Topic: "press", Lock: fmt.Sprint("press ", i%7)})
	p.settle(t, "mail", streamBatch)
	if i%2 == 1 {
		p.settle(t, "keyed", 2*streamBatch)
	}
	for range streamLocked {
		p.settle(t, "press", 1)
	}
}

// settle has messages of a topic claimed and completed, with a result.
func (p *passing) settle(t *testing.T, topic string, n int) {
	t.Helper()
	rows := running(p.commit(t, calls.Claim(p.origin(), fsm.Claim{Worker: worker, Asks: []fsm.Ask{{Topic: topic, N: n}}})))
	if len(rows) == 0 {
		t.Fatalf("nothing to claim of %s", topic)
	}
	c := fsm.Settle{Sender: worker, Recordable: len(rows)}
	var results []*store.Payload
	for _, row := range rows {
		m, err := calls.Message(row)
		if err != nil {
			t.Fatal(err)
		}
		result := &store.Payload{Salt: m.ID, Bytes: []byte(`{"done":true}`)}
		facts := events.Facts{Size: len(result.Bytes), Commitment: events.Commitment(result.Salt, result.Bytes)}
		c.Items = append(c.Items, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token, Result: facts}, Permit: m.Permit()})
		results = append(results, result)
	}
	call, _ := calls.Settle(p.origin(), c, rows, results...)
	p.commit(t, call)
}

// prune lets go of what is older than the retention.
func (p *passing) prune(t *testing.T) {
	t.Helper()
	known := calls.Known{Now: p.now}
	for {
		call, seen := calls.Prune(p.origin(), fsm.Prune{Retention: streamRetention, Events: pruneEvents, Rows: 1000, Decider: worker}, known)
		receipt := p.commit(t, call)
		switch {
		case len(seen.Unseen) > 0:
			known = known.See(seen.Unseen)
		case len(receipt.Events) == 0 || seen.Events < pruneEvents/2:
			return
		}
	}
}

// measure notes what the store takes of the disk.
func (p *passing) measure(t *testing.T) {
	t.Helper()
	file, log := size(t, p.path), int64(0)
	if info, err := os.Stat(p.path + "-wal"); err == nil {
		log = info.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	p.sizes, p.most = append(p.sizes, file), max(p.most, file+log)
}
