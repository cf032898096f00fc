package foundling

import (
	"fmt"
	"sync"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// MaxResult is the largest result that a handler may set, in bytes.
const MaxResult = store.MaxResult

// SetResult keeps what the handler gives back, encoded as payloads are, if the message completes by it: Get and Wait read it as
// MessageInfo.Result, until retention lets it go or somebody erases it. Of two, the second counts. One of more than MaxResult bytes is an
// ErrTooLarge; keep a large one elsewhere, and set where it is. It is an ErrInvalid once the handler has returned.
func (m Message[T]) SetResult(v any) error {
	if err := m.result.set(v); err != nil {
		return fmt.Errorf("set result of message %s: %w", m.ID, err)
	}
	return nil
}

// resultSlot is where a handler leaves its result. A nil one, of a message that was made by hand, checks it and keeps nothing.
type resultSlot struct {
	codec Codec

	mu     sync.Mutex
	value  coded
	closed bool
}

func (s *resultSlot) set(v any) error {
	var codec Codec = jsonCodec{}
	if s != nil {
		codec = s.codec
	}
	value, err := encode(codec, "it", v)
	switch n := len(value.bytes); {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("0 bytes, want 1 to %d: %w", MaxResult, ErrInvalid)
	case n > MaxResult:
		return fmt.Errorf("%d bytes, at most %d: %w", n, MaxResult, ErrTooLarge)
	}
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("its handler has returned: %w", ErrInvalid)
	}
	s.value = value
	return nil
}

// close gives what was set, and takes nothing more.
func (s *resultSlot) close() coded {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.value
}

// sealResult is a result as it is kept, with what the log keeps of it; nothing where none was set.
func (c *Client) sealResult(v coded) (*store.Payload, events.Facts, error) {
	if len(v.bytes) == 0 {
		return nil, events.Facts{}, nil
	}
	p := new(store.Payload)
	facts, err := c.seal(v, p)
	return p, facts, err
}
