package postgres

import (
	"context"
	"sync"
	"time"
)

const (
	// sealEvery is how often it is written down at most.
	sealEvery   = 25 * time.Millisecond
	sealTimeout = 5 * time.Second
	// sealPause is how long after a seal that failed none is tried: a role that may only read fails every time.
	sealPause = time.Minute

	// Nobody waits for the disk: what is lost with the server is written down again, and whatever made it true reached the disk before it.
	sealAsync = "SET LOCAL synchronous_commit = off"
	// A server that was started again may draw numbers once more, so what was found by the one before is not written.
	sealWrite = "INSERT INTO @log_head AS h (id, safe) SELECT 1, $1 FROM @blocks WHERE " + serverText + " = $2 AND last_value >= $1" +
		" ON CONFLICT (id) DO UPDATE SET safe = excluded.safe WHERE h.safe < excluded.safe"
)

// seals writes down up to where the log is final, for readers on a standby, who cannot ask who writes.
type seals struct {
	mu   sync.Mutex
	busy bool
	next time.Time // none before
	last string    // the server that it was written on
	safe int64     // that was written last there
	done sync.WaitGroup
}

// due reports whether somebody is to write a number down, and makes it the caller who does.
func (s *seals) due(server string, final int64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != server { // numbers may be drawn once more
		s.last, s.safe = server, 0
	}
	if s.busy || final <= s.safe || now.Before(s.next) {
		return false
	}
	s.busy = true
	return true
}

// written ends it.
func (s *seals) written(server string, final int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.next = false, time.Now().Add(sealEvery)
	switch {
	case code(err) == codeDenied, code(err) == codeReadOnly:
		s.next = time.Now().Add(sealPause)
	case err == nil && s.last == server: // else a look has found another one meanwhile, which may draw lower numbers
		s.safe = final
	}
}

// seal writes down up to where the log is final where a look finds that it has moved. The reader does not wait for it.
func (s *Store) seal(l *look, final int64) {
	seals := &s.powers.seals
	if l.standby || final <= l.sealed || s.enter(context.Background()) != nil {
		return
	}
	if !seals.due(l.server, final, time.Now()) {
		s.calls.Done()
		return
	}
	seals.done.Go(func() {
		defer s.calls.Done()
		ctx, cancel := context.WithTimeout(context.Background(), sealTimeout)
		defer cancel()
		seals.written(l.server, final, s.writeSeal(ctx, l.server, final))
	})
}

func (s *Store) writeSeal(ctx context.Context, server string, final int64) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	p := s.pipeline()
	p.begin(beginWrite)
	p.exec(sealAsync)
	p.exec(sealWrite, final, server)
	p.exec("COMMIT")
	return p.run(ctx, conn.Conn())
}
