package foundling_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store/memory"
)

// listed is the ids of all pages, which are checked for their bound.
func listed(t *testing.T, c *foundling.Client, o foundling.ListOptions) []foundling.ID {
	t.Helper()
	var ids []foundling.ID
	for range 1000 {
		page, err := c.List(t.Context(), o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if o.Limit > 0 && len(page.Messages) > o.Limit || len(page.Unread) > 0 {
			t.Errorf("%+v: %d messages, unread %v", o, len(page.Messages), page.Unread)
		}
		for _, m := range page.Messages {
			ids = append(ids, m.ID)
		}
		if o.After = page.Next; o.After == "" {
			return ids
		}
	}
	t.Fatal("the pages do not end")
	return nil
}

func TestList(t *testing.T) { onBothEngines(t, testList) }

func testList(t *testing.T, s *shelf) {
	second := func(n int) time.Time { return s.begun.Add(time.Duration(n) * time.Second) }
	ended := []foundling.State{foundling.Completed, foundling.Cancelled, foundling.Discarded}
	for _, test := range []struct {
		name string
		opts foundling.ListOptions
		want string
	}{
		{"the zero", foundling.ListOptions{}, "waits blocked runs dead"},
		{"a topic", foundling.ListOptions{Topic: "work"}, "blocked runs dead"},
		{"another topic", foundling.ListOptions{Topic: "later"}, "waits"},
		{"no such topic", foundling.ListOptions{Topic: "never"}, ""},
		{"a state", foundling.ListOptions{States: []foundling.State{foundling.DeadLettered}}, "dead"},
		{"two states", foundling.ListOptions{States: []foundling.State{foundling.Queued, foundling.Running}}, "waits runs"},
		{"a lock", foundling.ListOptions{Lock: "l1"}, "blocked runs"},
		{"a key", foundling.ListOptions{Topic: "later", Key: "k1"}, "waits"},
		{"a key of what has ended", foundling.ListOptions{Topic: "work", Key: "k1"}, ""},
		{"a key and its state", foundling.ListOptions{Topic: "work", Key: "k2", States: []foundling.State{foundling.Queued}}, ""},
		{"from", foundling.ListOptions{From: second(4)}, "waits blocked"},
		{"until", foundling.ListOptions{Until: second(4)}, "runs dead"},
		{"from and until", foundling.ListOptions{From: second(3), Until: second(5)}, "blocked runs"},
		{"a millisecond on", foundling.ListOptions{From: second(3).Add(time.Millisecond), Until: second(4).Add(1)}, "blocked"},
		{"until the year 1960", foundling.ListOptions{Until: time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)}, ""},
		{"until the first of all times", foundling.ListOptions{Until: time.Unix(0, 0)}, ""},
		{"until the year 11000", foundling.ListOptions{Until: time.Date(11000, 1, 1, 0, 0, 0, 0, time.UTC)}, "waits blocked runs dead"},
		{"all until the year 1960", foundling.ListOptions{States: foundling.States(), Until: time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)}, ""},
		{"nothing so late", foundling.ListOptions{From: second(100)}, ""},
		{"ended", foundling.ListOptions{States: ended}, "done unwanted skipped"},
		{"completed", foundling.ListOptions{States: ended[:1]}, "done"},
		{"ended of a topic", foundling.ListOptions{States: ended, Topic: "later"}, ""},
		{"ended with a lock", foundling.ListOptions{States: ended, Lock: "l1"}, "done skipped"},
		{"ended with a key", foundling.ListOptions{States: ended, Topic: "work", Key: "k1"}, "done"},
		{"ended from", foundling.ListOptions{States: ended, From: second(1)}, "unwanted skipped"},
		{"all", foundling.ListOptions{States: foundling.States()}, "waits blocked runs dead done unwanted skipped"},
	} {
		for _, limit := range []int{0, 1, 2, 1000} {
			test.opts.Limit = limit
			if got := s.names(listed(t, s.c, test.opts)); got != test.want {
				t.Errorf("%s by %d: %q, want %q", test.name, limit, got, test.want)
			}
		}
	}
}

func TestAListSaysWhatGetSays(t *testing.T) { onBothEngines(t, testListAndGet) }

func testListAndGet(t *testing.T, s *shelf) {
	page, err := s.c.List(t.Context(), foundling.ListOptions{States: foundling.States()})
	if err != nil || len(page.Messages) != len(s.ids) {
		t.Fatalf("%d messages, %v", len(page.Messages), err)
	}
	for _, m := range page.Messages {
		want := get(t, s.c, m.ID)
		if err := m.Payload.Decode(new(string)); !errors.Is(err, foundling.ErrInvalid) {
			t.Errorf("%s: its payload was not read: %v", m.ID, err)
		}
		m.Payload, want.Payload = foundling.Content{}, foundling.Content{}
		if want.Result.Bytes != nil {
			want.Result = foundling.Content{Codec: want.Result.Codec, Size: want.Result.Size}
		}
		if !m.Ended() { // of these, List reads the rows alone
			want.EndedAt, want.Reason, want.Detail, want.Error = time.Time{}, "", "", ""
		}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("List says\n%+v, Get\n%+v", m, want)
		}
	}
}

func TestListRefusesWhatItDoesNotKnow(t *testing.T) {
	c, _ := newClient(t)
	other, _ := newClient(t)
	enqueue(t, other, "mail", "x", foundling.EnqueueOptions{})
	foreign, err := other.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		opts foundling.ListOptions
		says string
	}{
		"a state of a lock":     {foundling.ListOptions{States: []foundling.State{events.Held}}, "held is no state of a message, want one of queued, blocked"},
		"no state":              {foundling.ListOptions{States: []foundling.State{99}}, "want one of queued"},
		"a name":                {foundling.ListOptions{Topic: "a\nb"}, "cannot be printed"},
		"a key alone":           {foundling.ListOptions{Key: "k"}, `Key "k" without a Topic`},
		"a limit":               {foundling.ListOptions{Limit: 1001}, "want 0 to 1000"},
		"times turned":          {foundling.ListOptions{From: time.Unix(2, 0), Until: time.Unix(1, 0)}, "is not before"},
		"no place":              {foundling.ListOptions{After: "yesterday"}, `"yesterday" is not where a page begins`},
		"half a place":          {foundling.ListOptions{After: "row:123"}, "is not where a page begins"},
		"another store's place": {foundling.ListOptions{After: "log:" + string(foreign), States: []foundling.State{foundling.Completed}}, "belongs to store"},
		"no cursor":             {foundling.ListOptions{After: "log:x", States: []foundling.State{foundling.Completed}}, "cursor"},
	} {
		page, err := c.List(t.Context(), test.opts)
		if !errors.Is(err, foundling.ErrInvalid) || !strings.Contains(err.Error(), test.says) || len(page.Messages) > 0 {
			t.Errorf("%s: %v, want an ErrInvalid that says %q", name, err, test.says)
		}
	}
	if s, err := foundling.ParseState("dead_lettered"); s != foundling.DeadLettered || err != nil {
		t.Errorf("%s, %v", s, err)
	}
	if _, err := foundling.ParseState("dead"); !errors.Is(err, foundling.ErrInvalid) || !strings.Contains(err.Error(), "dead_lettered, completed") {
		t.Error(err)
	}
}

func TestAPagePastTheEndIsEmpty(t *testing.T) {
	s := newShelf(t)
	lowest := foundling.ID{7: 1}
	for _, after := range []string{"row:" + lowest.String()} {
		page, err := s.c.List(t.Context(), foundling.ListOptions{After: after})
		if err != nil || len(page.Messages) > 0 || page.Next != "" {
			t.Errorf("after %s: %+v, %v", after, page, err)
		}
	}
	head, err := s.c.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page, err := s.c.List(t.Context(), foundling.ListOptions{After: "log:" + string(head), States: foundling.States()})
	if err != nil || len(page.Messages) > 0 || page.Next != "" {
		t.Errorf("after the head: %+v, %v", page, err)
	}
}

// Messages that end while somebody pages through them are given once or not at all, and never keep him from the end.
func TestAListIsPagedWhileMessagesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t)
		var before []foundling.ID
		for i := range 50 {
			before = append(before, enqueue(t, c, "mail", fmt.Sprint(i), foundling.EnqueueOptions{}))
		}
		o := foundling.ListOptions{Limit: 7}
		var seen []foundling.ID
		for {
			page, err := c.List(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				seen = append(seen, m.ID)
			}
			enqueue(t, c, "mail", "another", foundling.EnqueueOptions{})
			if o.After = page.Next; o.After == "" {
				break
			}
		}
		slices.Reverse(before)
		if !slices.Equal(seen, before) {
			t.Errorf("seen %d messages, want the %d of the beginning, newest first", len(seen), len(before))
		}
	})
}

func TestAListGoesOnBesideADamagedRow(t *testing.T) {
	s := &unread{Store: memory.New(memory.Options{})}
	c := clientOf(t, s)
	var ids []foundling.ID
	for i := range 3 {
		ids = append(ids, enqueue(t, c, "mail", fmt.Sprint(i), foundling.EnqueueOptions{}))
	}
	bad := events.MessageEntity(ids[1])
	s.bad.Store(&bad)
	for _, limit := range []int{1, 2, 3} {
		var good, unread int
		for o := (foundling.ListOptions{Limit: limit}); ; {
			page, err := c.List(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			good, unread = good+len(page.Messages), unread+len(page.Unread)
			if o.After = page.Next; o.After == "" {
				break
			}
		}
		if good != 2 || unread != 1 {
			t.Errorf("by %d: %d messages and %d errors, want 2 and 1", limit, good, unread)
		}
	}
}
