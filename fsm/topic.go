package fsm

import (
	"time"

	"github.com/foundling-go/foundling/events"
)

// topicLife is the table of a topic's life. A topic never ends.
var topicLife = newLifecycle(events.KindTopic,
	edge(events.TypeTopicConfigured, events.Active, events.Absent, events.Active),
	edge(events.TypeTopicConfigured, events.Paused, events.Paused),
	edge(events.TypeTopicCounted, events.Active, events.Active),
	edge(events.TypeTopicCounted, events.Paused, events.Paused),
	edge(events.TypeTopicPaused, events.Paused, events.Active),
	edge(events.TypeTopicResumed, events.Active, events.Paused),
	edge(events.TypeTopicSnapshotted, events.Active, events.Active),
	edge(events.TypeTopicSnapshotted, events.Paused, events.Paused),
)

// Topic is a queue as its events have left it. Its zero value is a topic that was never seen.
type Topic struct {
	Name     string
	Version  int
	State    events.State
	Limit    int  // open claims at most; 0 is no limit
	Counting bool // the limit is new and older claims are not counted yet: nothing is granted
	Running  int  // open counted claims. A store adds to it under the topic's row; no event of the topic carries it
}

// VisitFields names the fields as a store keeps them. The name, the version and the running count have columns of their own.
func (t *Topic) VisitFields(f *events.Fields) {
	f.State("state", &t.State)
	f.Int("limit", &t.Limit)
	f.Flag("counting", &t.Counting)
}

// Limited reports whether claims of the topic are counted.
func (t Topic) Limited() bool { return t.Limit > 0 }

// Room is how many claims of n the topic grants now.
func (t Topic) Room(n int) int {
	switch {
	case t.State == events.Paused || t.Counting:
		return 0
	case t.Limited():
		return max(0, min(n, t.Limit-t.Running))
	}
	return n
}

// ConfigureTopic sets a topic's settings, or makes it known.
type ConfigureTopic struct {
	Limit  int
	By     string
	Detail string
}

// CountTopic says that every open claim of the topic counts by now, which ends the counting that a new limit began. See [CountClaims].
type CountTopic struct{}

// PauseTopic stops claims of the topic.
type PauseTopic struct {
	By     string
	Detail string
}

// ResumeTopic lets them go on.
type ResumeTopic struct {
	By     string
	Detail string
}

// TopicCommand is a command to one topic.
type TopicCommand interface {
	// Name is an imperative, as it is recorded with commits.
	Name() string
	decideTopic(Topic) ([]events.Event, *Refusal)
}

// Decide gives the events that follow from a command, or a *Refusal. A command that would change nothing gives no event.
func (t Topic) Decide(c TopicCommand, _ time.Time) ([]events.Event, error) {
	list, refusal := c.decideTopic(t)
	if refusal != nil {
		return nil, refusal
	}
	return list, nil
}

// Evolve is the topic after a recorded event. An event of another lifecycle leaves it as it is.
func (t Topic) Evolve(event events.Event, _ time.Time) Topic {
	to, ok := topicLife.Next(t.State, event.Type())
	if !ok {
		return t
	}
	t.State = to
	t.Version++
	switch e := event.(type) {
	case *events.TopicConfigured:
		t.Limit, t.Counting = e.Limit, e.Counting
	case *events.TopicCounted:
		t.Counting = false
	}
	return t
}

// Name is "configure-topic".
func (ConfigureTopic) Name() string { return "configure-topic" }

func (c ConfigureTopic) decideTopic(t Topic) ([]events.Event, *Refusal) {
	if t.State != events.Absent && t.Limit == c.Limit {
		return nil, nil
	}
	// Claims that were granted without a limit were not counted. A topic seen for the first time has none.
	counting := c.Limit > 0 && t.State != events.Absent && (t.Counting || !t.Limited())
	return []events.Event{&events.TopicConfigured{Limit: c.Limit, Counting: counting, By: c.By, Detail: c.Detail}}, nil
}

// Name is "count-topic".
func (CountTopic) Name() string { return "count-topic" }

func (c CountTopic) decideTopic(t Topic) ([]events.Event, *Refusal) {
	if !t.Counting {
		return nil, t.refusal(c.Name())
	}
	return []events.Event{&events.TopicCounted{}}, nil
}

// Name is "pause".
func (PauseTopic) Name() string { return "pause" }

func (c PauseTopic) decideTopic(t Topic) ([]events.Event, *Refusal) {
	if _, ok := topicLife.Next(t.State, events.TypeTopicPaused); !ok {
		return nil, t.refusal(c.Name())
	}
	return []events.Event{&events.TopicPaused{By: c.By, Detail: c.Detail}}, nil
}

// Name is "resume".
func (ResumeTopic) Name() string { return "resume" }

func (c ResumeTopic) decideTopic(t Topic) ([]events.Event, *Refusal) {
	if _, ok := topicLife.Next(t.State, events.TypeTopicResumed); !ok {
		return nil, t.refusal(c.Name())
	}
	return []events.Event{&events.TopicResumed{By: c.By, Detail: c.Detail}}, nil
}

func (t Topic) refusal(command string) *Refusal {
	reason := events.ReasonWrongState
	if t.State == events.Absent {
		reason = events.ReasonNotFound
	}
	return &Refusal{Command: command, Entity: events.TopicEntity(t.Name), State: t.State, Reason: reason}
}
