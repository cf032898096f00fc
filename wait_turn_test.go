package foundling

import (
	"context"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store/memory"
)

// A second waiter may get the turn to begin though the first has begun. Were the place in the log to move then, the end of a message that came
// between would never be seen by who waits for it.
func TestWaiterWhoComesSecondDoesNotSkipTheEndOfAnothersMessage(t *testing.T) {
	c, err := NewClient(memory.New(memory.Options{}), ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := NewTopic[string]("mail", TopicOptions{}).Enqueue(t.Context(), c, "hello", EnqueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	woken, leave := c.waits.join(id)
	defer leave()
	if err := c.waits.settle(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := c.Cancel(t.Context(), "unwanted", id); err != nil {
		t.Fatal(err)
	}
	c.waits.turn <- struct{}{}
	err = c.waits.first(t.Context(), c, c.waits.settled)
	<-c.waits.turn
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.waits.until(ctx, c, woken); err != nil {
		t.Errorf("the first waiter: %v", err)
	}
}
