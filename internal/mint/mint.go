// Package mint makes ids: UUIDv7 from a given source of randomness and a given time, so that a recorded run comes out byte for byte.
package mint

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Source mints ids and draws the other random choices of a client. It may be used from many goroutines.
type Source struct {
	mu     sync.Mutex
	random io.Reader
	ms     int64  // the time of the last id
	next   uint16 // the counter within that millisecond, 12 bits
}

// New is a source over a reader of random bytes.
func New(random io.Reader) *Source { return &Source{random: random} }

// ID mints a UUIDv7 at the given time. Ids of one source rise: within a millisecond, and when the time goes back, a counter does, so
// that what was made first sorts first.
func (s *Source) ID(now time.Time) (uuid.UUID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var id uuid.UUID
	if _, err := io.ReadFull(s.random, id[6:]); err != nil {
		return id, fmt.Errorf("mint an id: %w", err)
	}
	if ms := now.UnixMilli(); ms > s.ms {
		s.ms, s.next = ms, (uint16(id[6])<<8|uint16(id[7]))&0x7ff // the upper half stays free to count in
	} else if s.next++; s.next > 0xfff {
		s.ms, s.next = s.ms+1, 0
	}
	for i := range 6 {
		id[i] = byte(s.ms >> (40 - 8*i))
	}
	id[6], id[7] = 0x70|byte(s.next>>8), byte(s.next)
	id[8] = 0x80 | id[8]&0x3f
	return id, nil
}

// Fill draws random bytes.
func (s *Source) Fill(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.ReadFull(s.random, b); err != nil {
		return fmt.Errorf("draw random bytes: %w", err)
	}
	return nil
}

// Jitter draws a whole number from -most to most.
func (s *Source) Jitter(most int) (int, error) {
	var b [2]byte
	if err := s.Fill(b[:]); err != nil {
		return 0, err
	}
	return int(uint16(b[0])<<8|uint16(b[1]))%(2*most+1) - most, nil
}
