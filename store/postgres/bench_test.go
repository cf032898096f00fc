package postgres

import (
	"fmt"
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
)

// BenchmarkJobs is one message from its enqueue to its end, in batches, of one client.
func BenchmarkJobs(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("batches of ", size), func(b *testing.B) {
			s, err := Open(b.Context(), pgtest.Database(b), Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			bed := &beds{t: b, s: s}
			bed.configure("mail", 0)
			worker := bed.id()
			round := func() {
				bed.enqueue("mail", "", size)
				rows := bed.claim(worker, "mail", size)
				if len(rows) != size {
					b.Fatalf("%d of %d were claimed", len(rows), size)
				}
				bed.settle(worker, rows)
			}
			round()
			h := newHand(b, s)
			wal := h.wal()
			b.ResetTimer()
			jobs := 0
			for b.Loop() {
				round()
				jobs += size
			}
			b.StopTimer()
			b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(h.wal()-wal)/float64(jobs), "WAL-B/job")
		})
	}
}

// wal is how many bytes the server has logged.
func (h *hand) wal() (n int64) {
	h.t.Helper()
	if err := h.conn.QueryRow(h.t.Context(), "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}
