package foundling_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// log is all events of a store.
func logOf(t rapid.TB, s store.Store) []events.Recorded {
	t.Helper()
	var list []events.Recorded
	for r, err := range s.Read(context.Background(), "", store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func positions(list []events.Recorded) []int64 {
	var all []int64
	for _, r := range list {
		all = append(all, r.Position)
	}
	return all
}

// toHead is what Events yields until the head.
func toHead(t rapid.TB, c *foundling.Client, after foundling.Cursor, f foundling.EventFilter) []events.Recorded {
	t.Helper()
	f.Stop = foundling.StopAtHead
	var list []events.Recorded
	for r, err := range c.Events(context.Background(), after, f) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func TestEventsFiltered(t *testing.T) {
	s := newShelf(t)
	word := func(list []events.Recorded) string {
		var words []string
		for _, r := range list {
			words = append(words, strings.TrimPrefix(r.Event.Type().String(), "message."))
		}
		return strings.Join(words, " ")
	}
	claimed, enqueued := events.TypeMessageClaimed, events.TypeMessageEnqueued
	for _, test := range []struct {
		name string
		f    foundling.EventFilter
		want string
	}{
		{"a type", foundling.EventFilter{Types: []events.Type{claimed}}, "claimed claimed claimed claimed"},
		{"a topic", foundling.EventFilter{Topic: "later"}, "topic.configured enqueued"},
		{"a topic and a type", foundling.EventFilter{Topic: "later", Types: []events.Type{claimed, enqueued}}, "enqueued"},
		{"an entity", foundling.EventFilter{Entity: events.MessageEntity(s.ids["unwanted"])}, "enqueued claimed cancelled"},
		{"an entity and a type", foundling.EventFilter{Entity: events.MessageEntity(s.ids["unwanted"]), Types: []events.Type{claimed}}, "claimed"},
		{"an entity of another topic", foundling.EventFilter{Entity: events.MessageEntity(s.ids["unwanted"]), Topic: "later"}, ""},
		{"an entity of its topic", foundling.EventFilter{Entity: events.MessageEntity(s.ids["dead"]), Topic: "work"}, "enqueued claimed dead_lettered"},
		{"no such topic", foundling.EventFilter{Topic: "never"}, ""},
	} {
		if got := word(toHead(t, s.c, "", test.f)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// Whatever the filter and wherever it is stopped, a follower gets what passes the filter, each event once and in order.
func TestAFollowerStoppedAndContinuedMissesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := memory.New(memory.Options{})
		c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: quiet})
		if err != nil {
			rt.Fatal(err)
		}
		var ids []foundling.ID
		topics := []string{"a", "b"}
		write := func() {
			topic := rapid.SampledFrom(topics).Draw(rt, "topic")
			id, err := foundling.NewTopic[int](topic, foundling.TopicOptions{}).Enqueue(context.Background(), c, 1, foundling.EnqueueOptions{})
			if err == nil && rapid.Bool().Draw(rt, "cancel") {
				err = c.Cancel(context.Background(), "no", rapid.SampledFrom(append(ids, id)).Draw(rt, "which"))
			}
			if err != nil && !errors.As(err, new(*foundling.Refusal)) {
				rt.Fatal(err)
			}
			ids = append(ids, id)
		}
		for range 10 {
			write()
		}
		f := foundling.EventFilter{}
		passes := func(events.Recorded) bool { return true }
		switch rapid.IntRange(0, 3).Draw(rt, "filter") {
		case 1:
			f.Types = []events.Type{events.TypeMessageCancelled}
			passes = func(r events.Recorded) bool { return r.Event.Type() == events.TypeMessageCancelled }
		case 2:
			f.Topic = "b"
			passes = func(r events.Recorded) bool {
				return r.Entity == events.TopicEntity("b") || r.Entity.Kind == events.KindMessage && get(rt, c, r.Entity.ID).Topic == "b"
			}
		case 3:
			f.Entity = events.MessageEntity(rapid.SampledFrom(ids).Draw(rt, "entity"))
			passes = func(r events.Recorded) bool { return r.Entity == f.Entity }
		}
		whole := logOf(rt, s)
		begin := rapid.IntRange(0, len(whole)).Draw(rt, "begin")
		var after foundling.Cursor
		if begin > 0 {
			after = c.After(whole[begin-1])
		}
		var got []events.Recorded
		for range rapid.IntRange(0, 4).Draw(rt, "stops") {
			left := rapid.IntRange(1, 5).Draw(rt, "events")
			f.Stop = foundling.StopAtHead
			for r, err := range c.Events(context.Background(), after, f) {
				if err != nil {
					rt.Fatal(err)
				}
				got, after = append(got, r), c.After(r)
				if rapid.Bool().Draw(rt, "meanwhile") {
					write()
				}
				if left--; left == 0 {
					break
				}
			}
			write()
		}
		got = append(got, toHead(rt, c, after, f)...)
		var want []events.Recorded
		for _, r := range logOf(rt, s)[begin:] {
			if passes(r) {
				want = append(want, r)
			}
		}
		if diff := cmp.Diff(positions(want), positions(got)); diff != "" {
			rt.Errorf("positions (-want +got):\n%s", diff)
		}
	})
}

// A follower gets what this client and another one write while it follows, until its context ends.
func TestAFollowerGetsWhatIsStillToCome(t *testing.T) {
	for name, filter := range map[string]foundling.EventFilter{
		"all":      {},
		"a type":   {Types: []events.Type{events.TypeMessageEnqueued, events.TypeMessageCancelled}},
		"a topic":  {Topic: "mail"},
		"a family": {Topic: "mail", Types: []events.Type{events.TypeMessageCancelled}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.New(memory.Options{})
				c, other := clientOf(t, s), clientOf(t, s)
				old := enqueue(t, c, "mail", "enqueued before", foundling.EnqueueOptions{})
				head, err := c.Head(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var got []events.Recorded
				var last error
				done := make(chan struct{})
				go func() {
					defer close(done)
					for r, err := range c.Events(ctx, head, filter) {
						if last = err; err == nil {
							got = append(got, r)
						}
					}
				}()
				for i := range 20 {
					time.Sleep(time.Duration(i) * 10 * time.Millisecond)
					enqueue(t, []*foundling.Client{c, other}[i%2], "mail", "x", foundling.EnqueueOptions{})
				}
				if err := other.Cancel(t.Context(), "no", old); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				cancel()
				<-done
				if !errors.Is(last, context.Canceled) {
					t.Errorf("it ended with %v", last)
				}
				filter.Stop = foundling.StopAtHead
				if want := toHead(t, c, head, filter); len(want) == 0 || !slices.Equal(positions(got), positions(want)) {
					t.Errorf("got %v, want %v", positions(got), positions(want))
				}
			})
		})
	}
}

// The events of one entity are found by an index, and those that come meanwhile behind it: none is yielded twice.
func TestAFollowerOfOneEntity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		topic := events.TopicEntity("mail")
		move := func(n int) {
			if err := c.ConfigureTopic(t.Context(), "mail", foundling.TopicSettings{Limit: n}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 5 {
			move(n + 1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var versions []int
		for r, err := range c.Events(ctx, "", foundling.EventFilter{Entity: topic}) {
			if err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				break
			}
			versions = append(versions, r.Version)
			if n := len(versions); n <= 5 { // one for each that there was, while it looks them up
				move(n + 10)
			}
		}
		want := toHead(t, c, "", foundling.EventFilter{Entity: topic})
		if len(versions) != len(want) || !slices.IsSorted(versions) || len(slices.Compact(versions)) != len(want) {
			t.Errorf("versions %v, want those of %d events", versions, len(want))
		}
	})
}

// eager is a store whose topic is configured once more before anybody reads the topic's events.
type eager struct {
	store.Store
	before func()
}

func (s *eager) Unwrap() store.Store { return s.Store }

func (s *eager) Read(ctx context.Context, after store.Cursor, f store.Filter) iter.Seq2[events.Recorded, error] {
	if do := s.before; do != nil && f.Entity != (events.Entity{}) {
		s.before = nil
		do()
	}
	return s.Store.Read(ctx, after, f)
}

// What comes between the look at the head and the reading of the index stands behind the one and in the other.
func TestAFollowerOfOneEntityGetsNothingTwice(t *testing.T) {
	s := &eager{Store: memory.New(memory.Options{})}
	c := clientOf(t, s)
	for n := range 3 {
		if err := c.ConfigureTopic(t.Context(), "mail", foundling.TopicSettings{Limit: n + 1}); err != nil {
			t.Fatal(err)
		}
	}
	s.before = func() {
		if err := c.ConfigureTopic(t.Context(), "mail", foundling.TopicSettings{Limit: 9}); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	last, topic := 0, events.TopicEntity("mail")
	for r, err := range c.Events(ctx, "", foundling.EventFilter{Entity: topic}) {
		if err != nil {
			t.Fatal(err)
		}
		if last++; r.Version != last {
			t.Fatalf("version %d, want %d", r.Version, last)
		}
		if last == 4 {
			if err := c.PauseTopic(t.Context(), "mail", "the end"); err != nil {
				t.Fatal(err)
			}
		}
		if r.Event.Type() == events.TypeTopicPaused {
			break
		}
	}
}

func TestEventsEndsWithWhatComesAgain(t *testing.T) {
	c, s := newClient(t)
	other, _ := newClient(t)
	enqueue(t, c, "mail", "x", foundling.EnqueueOptions{})
	foreign, err := other.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	head, err := c.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ahead := c.After(events.Recorded{Position: 1_000_000})
	for name, test := range map[string]struct {
		after foundling.Cursor
		f     foundling.EventFilter
		want  error
	}{
		"another store's":       {foreign, foundling.EventFilter{}, store.ErrCursor},
		"no cursor":             {"yesterday", foundling.EventFilter{}, store.ErrCursor},
		"no cursor, one entity": {"yesterday", foundling.EventFilter{Entity: events.TopicEntity("mail")}, store.ErrCursor},
		"ahead of the log":      {ahead, foundling.EventFilter{}, store.ErrAhead},
		"an unknown type":       {head, foundling.EventFilter{Types: []events.Type{999}}, foundling.ErrInvalid},
		"a name":                {head, foundling.EventFilter{Topic: "a\x1bb"}, foundling.ErrInvalid},
		"an unknown kind":       {head, foundling.EventFilter{Entity: events.Entity{Kind: 99, Name: "x"}}, foundling.ErrInvalid},
		"an unknown stop":       {head, foundling.EventFilter{Stop: 9}, foundling.ErrInvalid},
	} {
		n := 0
		for _, err := range c.Events(t.Context(), test.after, test.f) {
			if n++; !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d errors", name, n)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Events(t.Context(), head, foundling.EventFilter{}) {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("on a closed store: %v", err)
		}
	}
}

func TestAFollowerWaitsForAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Store: memory.New(memory.Options{})}
		var text bytes.Buffer
		c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: slog.New(slog.NewTextHandler(&text, nil))})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, c, "mail", "0", foundling.EnqueueOptions{})
		n := 0
		for r, err := range c.Events(t.Context(), "", foundling.EventFilter{Types: []events.Type{events.TypeMessageEnqueued}}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 5 {
				break
			}
			s.down.Store(true)
			time.AfterFunc(time.Duration(n)*time.Second, func() { s.down.Store(false) })
			enqueue(t, c, "mail", fmt.Sprint(r.Position), foundling.EnqueueOptions{})
		}
		if s := text.String(); !strings.Contains(s, "store is out of reach") || !strings.Contains(s, errDown.Error()) {
			t.Errorf("log: %s", s)
		}
	})
}
