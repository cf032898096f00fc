package events_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/corpus"
	"pgregory.net/rapid"
)

func TestLine(t *testing.T) {
	commit := corpus.Commit()
	worker, message := events.ID{1}, events.ID{2}
	short := &events.Names{
		Short: func(id events.ID) string { return map[events.ID]string{worker: "w1", message: "m1"}[id] },
		Clock: func(at time.Time) string { return "+" + at.Sub(commit.At).String() },
	}
	claimed := events.Recorded{
		Transition: events.Transition{
			Event:   &events.MessageClaimed{Worker: worker, Token: 2, Attempt: 1},
			Version: 2, From: events.Queued, To: events.Running,
		},
		Position: 41, Entity: events.MessageEntity(message), Commit: &commit,
	}
	refused := claimed
	refused.Event = &events.MessageRefused{Command: "complete", Reason: events.ReasonStaleToken, Sender: worker, Sent: 2, Found: 4}
	refused.Version, refused.From = 0, events.Running
	requeued := claimed
	requeued.Event = &events.MessageRequeued{Reason: events.ReasonRetry, DueAt: commit.At.Add(time.Second), Jitter: -3, Error: "a\nb"}
	topic := claimed
	topic.Entity = events.TopicEntity("the mail")
	topic.Event, topic.Version, topic.From, topic.To = &events.TopicConfigured{Counting: true}, 1, events.Absent, events.Active
	told := claimed
	told.Event = &events.MessageSnapshotted{Snapshot: events.Snapshot{State: events.AppendFields(nil, &fsm.Message{State: events.Running, Worker: worker})}}
	told.Version, told.From = 3, events.Running
	tests := []struct {
		names *events.Names
		r     events.Recorded
		want  string
	}{
		{short, claimed, "41 +0s message m1 v2 queued→running message.claimed worker=w1 token=2 attempt=1"},
		{short, refused, "41 +0s message m1 running message.refused command=complete reason=stale_token sender=w1 sent=2 found=4"},
		{short, requeued, `41 +0s message m1 v2 queued→running message.requeued reason=retry due=+1s jitter=-3 error="a\nb"`},
		{short, told, `41 +0s message m1 v3 running→running message.snapshotted value={"state":3,"worker":"w1"}`},
		{short, topic, `41 +0s topic "the mail" v1 none→active topic.configured counting=yes`},
		{new(events.Names), claimed, "41 2026-01-02T03:04:05.678901Z message 02000000-0000-0000-0000-000000000000 v2 queued→running " +
			"message.claimed worker=01000000-0000-0000-0000-000000000000 token=2 attempt=1"},
	}
	for _, tt := range tests {
		if got := tt.names.Line(tt.r); got != tt.want {
			t.Errorf("line\n%s\nwant\n%s", got, tt.want)
		}
	}
}

// Nobody's names, and the zero names, show everything in full.
func TestZeroNames(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("east", 3600))
	for _, n := range []*events.Names{nil, {}} {
		if got, want := n.Time(at), "2026-01-02T02:04:05.0000006Z"; got != want {
			t.Errorf("time %s, want %s", got, want)
		}
		if got, want := n.ID(events.ID{1}), (events.ID{1}).String(); got != want {
			t.Errorf("id %s, want %s", got, want)
		}
		if got, want := n.Entity(events.TopicEntity("a b")), `topic "a b"`; got != want {
			t.Errorf("entity %s, want %s", got, want)
		}
		if got, want := n.Entity(events.WorkerEntity(events.ID{1})), "worker "+(events.ID{1}).String(); got != want {
			t.Errorf("entity %s, want %s", got, want)
		}
	}
}

// Whatever an event holds, its line is one line of printable text.
func TestLineIsPrintable(t *testing.T) {
	commit := corpus.Commit()
	raw := rapid.OneOf(someWords, rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	kinds := corpus.Samples()
	rapid.Check(t, func(rt *rapid.T) {
		event := blank(rapid.SampledFrom(kinds).Draw(rt, "type").Event).(events.Event)
		fill(rt, reflect.ValueOf(event).Elem())
		if rapid.IntRange(0, 4).Draw(rt, "unknown") == 0 {
			event = &events.Unknown{Code: 200, Schema: 3, Body: []byte(raw.Draw(rt, "body"))}
		}
		switch e := event.(type) { // and what never came through the stored form, which makes it valid UTF-8
		case *events.MessageRequeued:
			e.Error = raw.Draw(rt, "error")
		case *events.TopicPaused:
			e.By = raw.Draw(rt, "by")
		}
		r := events.Recorded{
			Transition: events.Transition{
				Event: event, Version: rapid.IntRange(0, 3).Draw(rt, "version"), From: events.State(rapid.Uint8().Draw(rt, "from")),
			},
			Entity: events.TopicEntity(raw.Draw(rt, "topic")), Commit: &commit,
		}
		line := new(events.Names).Line(r)
		if !utf8.ValidString(line) {
			rt.Errorf("not UTF-8: %q", line)
		}
		if i := strings.IndexFunc(line, func(c rune) bool { return !strconv.IsPrint(c) }); i >= 0 {
			rt.Errorf("%q is not printable in %q", line[i:], line)
		}
	})
}
