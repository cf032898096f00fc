package foundling_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/foundling-go/foundling/store/sqlite"
)

// BenchmarkEndToEnd enqueues messages of 20 bytes in batches while a worker with as many slots handles them, all through the client. The
// batch is what one commit carries at most.
func BenchmarkEndToEnd(b *testing.B) {
	engines := []struct {
		name string
		open func(b *testing.B, path string) (store.Store, error)
	}{
		{"memory", func(*testing.B, string) (store.Store, error) { return memory.New(memory.Options{}), nil }},
		{"sqlite-FULL", func(b *testing.B, path string) (store.Store, error) {
			return sqlite.Open(b.Context(), path, sqlite.Options{})
		}},
		{"sqlite-NORMAL", func(b *testing.B, path string) (store.Store, error) {
			return sqlite.Open(b.Context(), path, sqlite.Options{Synchronous: sqlite.SynchronousNormal})
		}},
	}
	for _, engine := range engines {
		for _, batch := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", engine.name, batch), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "store.db")
				s, err := engine.open(b, path)
				if err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				endToEnd(b, s, batch)
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				if info, err := os.Stat(path); err == nil {
					b.ReportMetric(float64(info.Size())/float64(b.N), "B/job")
				}
			})
		}
	}
}

func endToEnd(b *testing.B, s store.Store, batch int) {
	c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	topic := foundling.NewTopic[[]byte]("mail", foundling.TopicOptions{})
	w, err := foundling.NewWorker(c, foundling.WorkerOptions{Concurrency: batch})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(b.N))
	topic.Handle(w, func(context.Context, foundling.Message[[]byte]) error {
		if left.Add(-1) == 0 {
			cancel()
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for i := 0; i < b.N; i += batch {
		drafts := make([]foundling.Draft, min(batch, b.N-i, foundling.MaxDrafts))
		for j := range drafts {
			drafts[j] = topic.Draft([]byte("payload of 20 bytes "), foundling.EnqueueOptions{})
		}
		if _, err := c.EnqueueMany(context.Background(), drafts...); err != nil {
			b.Fatal(err)
		}
		i -= batch - len(drafts)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
