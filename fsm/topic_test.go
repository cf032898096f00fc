package fsm_test

import (
	"testing"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

func TestRoom(t *testing.T) {
	tests := []struct {
		name  string
		topic fsm.Topic
		asked int
		want  int
	}{
		{"nobody has seen it", fsm.Topic{}, 7, 7},
		{"no limit", fsm.Topic{State: events.Active, Running: 99}, 7, 7},
		{"a limit with room", fsm.Topic{State: events.Active, Limit: 10, Running: 2}, 7, 7},
		{"a limit with some room", fsm.Topic{State: events.Active, Limit: 10, Running: 6}, 7, 4},
		{"full", fsm.Topic{State: events.Active, Limit: 10, Running: 10}, 7, 0},
		{"over, since the limit was lowered", fsm.Topic{State: events.Active, Limit: 10, Running: 12}, 7, 0},
		{"nothing asked", fsm.Topic{State: events.Active, Limit: 10}, 0, 0},
		{"counting", fsm.Topic{State: events.Active, Limit: 10, Counting: true}, 7, 0},
		{"paused", fsm.Topic{State: events.Paused}, 7, 0},
		{"paused with a limit", fsm.Topic{State: events.Paused, Limit: 10}, 7, 0},
	}
	for _, tt := range tests {
		if got := tt.topic.Room(tt.asked); got != tt.want {
			t.Errorf("%s: room for %d of %d, want %d", tt.name, got, tt.asked, tt.want)
		}
	}
}

// Claims that were granted without a limit were not counted, so a limit set where there was none begins with counting them.
func TestConfigureTopic(t *testing.T) {
	tests := []struct {
		name  string
		topic fsm.Topic
		limit int
		want  []events.Event
	}{
		{"first seen, no limit", fsm.Topic{}, 0, []events.Event{&events.TopicConfigured{By: "ops"}}},
		{"first seen with a limit", fsm.Topic{}, 3, []events.Event{&events.TopicConfigured{Limit: 3, By: "ops"}}},
		{"the same again", fsm.Topic{State: events.Active, Limit: 3}, 3, nil},
		{"no limit again", fsm.Topic{State: events.Active}, 0, nil},
		{"a limit where there was none", fsm.Topic{State: events.Active}, 3,
			[]events.Event{&events.TopicConfigured{Limit: 3, Counting: true, By: "ops"}}},
		{"a limit where there was none, paused", fsm.Topic{State: events.Paused}, 3,
			[]events.Event{&events.TopicConfigured{Limit: 3, Counting: true, By: "ops"}}},
		{"raised", fsm.Topic{State: events.Active, Limit: 3}, 5, []events.Event{&events.TopicConfigured{Limit: 5, By: "ops"}}},
		{"lowered", fsm.Topic{State: events.Active, Limit: 3}, 1, []events.Event{&events.TopicConfigured{Limit: 1, By: "ops"}}},
		{"changed while counting", fsm.Topic{State: events.Active, Limit: 3, Counting: true}, 1,
			[]events.Event{&events.TopicConfigured{Limit: 1, Counting: true, By: "ops"}}},
		{"taken away", fsm.Topic{State: events.Active, Limit: 3}, 0, []events.Event{&events.TopicConfigured{By: "ops"}}},
		{"taken away while counting", fsm.Topic{State: events.Active, Limit: 3, Counting: true}, 0,
			[]events.Event{&events.TopicConfigured{By: "ops"}}},
	}
	for _, tt := range tests {
		got, err := tt.topic.Decide(fsm.ConfigureTopic{Limit: tt.limit, By: "ops"}, now)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		next := tt.topic
		for _, event := range got {
			next = next.Evolve(event, now)
		}
		if next.Limit != tt.limit {
			t.Errorf("%s: the limit is %d, want %d", tt.name, next.Limit, tt.limit)
		}
	}
}

// A pause keeps the settings, and settings keep the pause.
func TestPauseAndSettingsAreApart(t *testing.T) {
	topic := topicIn(events.Active)
	steps := []struct {
		command fsm.TopicCommand
		want    fsm.Topic
	}{
		{fsm.PauseTopic{}, fsm.Topic{State: events.Paused, Limit: 3}},
		{fsm.ConfigureTopic{Limit: 0}, fsm.Topic{State: events.Paused}},
		{fsm.ConfigureTopic{Limit: 4}, fsm.Topic{State: events.Paused, Limit: 4, Counting: true}},
		{fsm.CountTopic{}, fsm.Topic{State: events.Paused, Limit: 4}},
		{fsm.ResumeTopic{}, fsm.Topic{State: events.Active, Limit: 4}},
	}
	for i, step := range steps {
		list, err := topic.Decide(step.command, now)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", step.command.Name(), list, err)
		}
		topic = topic.Evolve(list[0], now)
		step.want.Name, step.want.Version = "mail", i+2
		if diff := cmp.Diff(step.want, topic); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.command.Name(), diff)
		}
	}
}
