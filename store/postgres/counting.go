package postgres

import "sync"

// counting is what a store remembers of topics, so that the next claim holds what it will need: whether claims of a topic change its count, and how
// many of its messages are not what was written. What it forgets costs another try.
type counting struct {
	mu      sync.Mutex
	counted map[string]bool
	damaged map[string]int
}

// most is of how many topics something is remembered.
const most = 10_000

func (c *counting) has(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted[topic]
}

func (c *counting) learn(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counted == nil || len(c.counted) > most {
		c.counted = map[string]bool{}
	}
	c.counted[topic] = true
}

// forget is of a topic whose claims change no count any more.
func (c *counting) forget(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.counted, topic)
}

// over is how many rows a page of a topic is longer, so as to hold some that are what was written.
func (c *counting) over(topic string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.damaged[topic]
}

func (c *counting) passOver(topic string, over int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.damaged == nil || len(c.damaged) > most {
		c.damaged = map[string]int{}
	}
	c.damaged[topic] = min(over, maxPassedOver)
}

// maxPassedOver is how many damaged rows a page passes over to find one that is not.
const maxPassedOver = 1024
