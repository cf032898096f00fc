package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/google/uuid"
)

// BenchmarkLives is messages from end to end: enqueued, claimed and completed in batches, one caller.
func BenchmarkLives(b *testing.B) {
	for _, mode := range []sqlite.Synchronous{sqlite.SynchronousFull, sqlite.SynchronousNormal} {
		for _, batch := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", mode, batch), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "store.db")
				s := open(b, path, sqlite.Options{Synchronous: mode})
				b.ResetTimer()
				for done := 0; done < b.N; done += batch {
					lives(b, s, min(batch, b.N-done))
				}
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(size(b, path))/float64(b.N), "B/job")
			})
		}
	}
}

// BenchmarkLivesWithLocks is the same for messages that take a lock each, which is free.
func BenchmarkLivesWithLocks(b *testing.B) {
	for _, batch := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "store.db"), sqlite.Options{})
			b.ResetTimer()
			for done := 0; done < b.N; done += batch {
				livesWithLocks(b, s, min(batch, b.N-done))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// livesWithLocks lets n messages live from end to end in three commits, each with a lock of its own.
func livesWithLocks(t testing.TB, s store.Store, n int) {
	t.Helper()
	locks := make([]string, n)
	for i := range locks {
		locks[i] = fmt.Sprint("lock ", i)
	}
	commit(t, s, lockingEach("mail", locks))
	rows := running(commit(t, s, claiming("mail", n)))
	if len(rows) != n {
		t.Fatalf("claimed %d of %d", len(rows), n)
	}
	commit(t, s, settling(t, worker, rows))
}

// open is a store that is closed with its test.
func open(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func size(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

var worker = uuid.Must(uuid.NewV7())

func origin() calls.Origin {
	return calls.Origin{ID: uuid.Must(uuid.NewV7()), Actor: worker.String()}
}

// enqueueing is the call that enqueues n messages of a topic with payloads of 20 bytes.
func enqueueing(topic string, n int) store.Call {
	c := fsm.Enqueue{Topics: map[string]fsm.TopicStart{topic: {}}}
	payloads := make([]store.Payload, n)
	for i := range payloads {
		id := uuid.Must(uuid.NewV7())
		payloads[i] = store.Payload{Salt: [16]byte(uuid.New()), Bytes: fmt.Appendf(nil, "payload %012d", i)}
		c.Drafts = append(c.Drafts, fsm.Draft{ID: id, EnqueueMessage: fsm.EnqueueMessage{
			Topic:   topic,
			Payload: events.Facts{Size: 20, Commitment: events.Commitment(payloads[i].Salt, payloads[i].Bytes)},
		}})
	}
	call, _ := calls.Enqueue(origin(), c, payloads)
	return call
}

func claiming(topic string, n int) store.Call {
	return calls.Claim(origin(), fsm.Claim{Worker: worker, Asks: []fsm.Ask{{Topic: topic, N: n}}})
}

// completing is the call that completes the messages of claimed rows.
func completing(t testing.TB, rows []store.Row) store.Call {
	t.Helper()
	c := fsm.Settle{Sender: worker, Recordable: len(rows)}
	for _, row := range rows {
		m, err := calls.Message(row)
		if err != nil {
			t.Fatal(err)
		}
		c.Items = append(c.Items, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token}})
	}
	call, _ := calls.Settle(origin(), c, rows)
	return call
}

// commit commits one call that must not be refused.
func commit(t testing.TB, s store.Store, call store.Call) store.Receipt {
	t.Helper()
	receipts, err := s.Decide(context.Background(), call)
	if err == nil {
		err = receipts[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
	return receipts[0]
}

// lives lets n messages live from end to end in three commits.
func lives(t testing.TB, s store.Store, n int) {
	t.Helper()
	commit(t, s, enqueueing("mail", n))
	rows := commit(t, s, claiming("mail", n)).Rows
	if len(rows) != n {
		t.Fatalf("claimed %d of %d", len(rows), n)
	}
	commit(t, s, completing(t, rows))
}
