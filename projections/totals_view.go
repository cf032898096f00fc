package projections

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// AsOf is the last event that was applied.
func (t *Totals) AsOf() Mark { return t.asOf }

// Counts is a copy of what was counted.
func (t *Totals) Counts() Counts {
	c := t.counts
	c.Transitions = cloneAll(c.Transitions)
	c.Refusals = maps.Clone(c.Refusals)
	for name, commands := range c.Refusals {
		c.Refusals[name] = cloneAll(commands)
	}
	c.Topics = make(map[string]TopicCounts, len(t.topics))
	for name, topic := range t.topics {
		copied := *topic
		copied.Requeued, copied.DeadLettered = maps.Clone(topic.Requeued), maps.Clone(topic.DeadLettered)
		c.Topics[name] = copied
	}
	c.Sweeps.Skipped = maps.Clone(c.Sweeps.Skipped)
	return c
}

func cloneAll(m map[string]map[string]int) map[string]map[string]int {
	m = maps.Clone(m)
	for key, inner := range m {
		m[key] = maps.Clone(inner)
	}
	return m
}

// totalsView is the stored form: JSON with its keys in order.
type totalsView struct {
	Position int64  `json:"position"` // of the last event that was applied
	At       micros `json:"at"`
	Counts
}

// View implements Durable.
func (t *Totals) View() ([]byte, error) {
	view, err := json.Marshal(totalsView{t.asOf.Position, microsOf(t.asOf.At), t.Counts()})
	if err != nil {
		return nil, fmt.Errorf("totals: %w", err)
	}
	return view, nil
}

// Restore implements Durable.
func (t *Totals) Restore(version int, view []byte) error {
	if version != t.Version() {
		return fmt.Errorf("totals: version %d is unknown to this version", version)
	}
	var v totalsView
	decoder := json.NewDecoder(bytes.NewReader(view))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		return fmt.Errorf("totals: %w", err)
	}
	t.asOf, t.counts = Mark{v.Position, v.At.time()}, v.Counts
	t.topics = make(map[string]*TopicCounts, len(v.Topics))
	for name, topic := range v.Topics {
		t.topics[name] = &topic
	}
	t.counts.Topics = nil
	return nil
}
