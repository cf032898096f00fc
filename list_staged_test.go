package foundling_test

import (
	"slices"
	"testing"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/memory"
)

func TestStagedMessagesAreListedByPagesBeforeAllOthers(t *testing.T) {
	d := newDesk(memory.New(memory.Options{}))
	c, err := foundling.NewClient(d, foundling.ClientOptions{Actor: "test", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	mail := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
	other := foundling.NewTopic[string]("other", foundling.TopicOptions{})
	logged, err := mail.Enqueue(t.Context(), c, "in the log", foundling.EnqueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var drafts []foundling.Draft
	for range 5 {
		drafts = append(drafts, mail.Draft("staged", foundling.EnqueueOptions{}), other.Draft("staged too", foundling.EnqueueOptions{}))
	}
	ids, err := c.Stage(t.Context(), drafts, d.put)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		topic  string
		states []foundling.State
		want   []foundling.ID
	}{
		{"", []foundling.State{foundling.Staged}, ids},
		{"mail", []foundling.State{foundling.Staged}, []foundling.ID{ids[0], ids[2], ids[4], ids[6], ids[8]}},
		{"", []foundling.State{foundling.Queued, foundling.Staged}, append(slices.Clone(ids), logged)},
		{"", nil, []foundling.ID{logged}},
	} {
		var got []foundling.ID
		o := foundling.ListOptions{Topic: test.topic, States: test.states, Limit: 3}
		for more, pages := true, 0; more && pages < 20; pages++ {
			page, err := c.List(t.Context(), o)
			if err != nil || len(page.Messages) > 3 || len(page.Unread) > 0 {
				t.Fatalf("%v: page of %d, %v, %v", test.states, len(page.Messages), page.Unread, err)
			}
			for _, m := range page.Messages {
				if got = append(got, m.ID); m.ID != logged && m.State != foundling.Staged {
					t.Errorf("%s is %s", m.ID, m.State)
				}
			}
			o.After, more = page.Next, page.Next != ""
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("topic %q in %v: %v, want %v", test.topic, test.states, got, test.want)
		}
	}
}
