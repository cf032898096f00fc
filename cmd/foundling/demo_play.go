package main

import (
	"context"
	"slices"
	"time"

	"github.com/foundling-go/foundling"

	"github.com/foundling-go/foundling/projections"
)

// opening is how both acts begin: work waits, and two workers take a receipt each.
func (st *stage) opening(ctx context.Context) error {
	receipts := foundling.NewTopic[string](demoReceipts, foundling.TopicOptions{Limit: demoLimit})
	letters := foundling.NewTopic[string](demoLetters, foundling.TopicOptions{})
	draft := func(t foundling.Topic[string], what, user string) foundling.Draft {
		return t.Draft(what, foundling.EnqueueOptions{Lock: "user:" + user})
	}
	_, err := st.client.EnqueueMany(ctx,
		draft(receipts, "order 1", "ann"), draft(receipts, "order 2", "bob"), draft(receipts, "order 3", "ann"),
		draft(receipts, "order 4", "cyd"), draft(receipts, "order 5", "bob"), draft(receipts, "order 6", "cyd"),
		draft(letters, "to ann", "ann"), draft(letters, "to cyd", "cyd"))
	if err != nil {
		return err
	}
	for range demoLimit {
		if _, err := st.hire(ctx, hand{topics: []string{demoReceipts}, at: 1, takes: time.Minute}); err != nil {
			return err
		}
	}
	err = st.until(ctx, "both workers have a receipt", func(l *look) bool {
		claims := l.state.Topics.Claims(demoReceipts)
		if len(claims) < demoLimit {
			return false
		}
		st.rescued = claims[0].Message
		return true
	})
	if err != nil {
		return err
	}
	return st.shell(ctx, 0, "topics")
}

// receiptsOf is the topic that has a limit.
func receiptsOf(l *look) projections.Topic {
	t, _ := l.state.Topics.Topic(demoReceipts)
	return t
}

// kill kills the workers that are there, and says when, by the store's clock.
func (st *stage) kill(ctx context.Context) (time.Time, error) {
	for _, h := range st.hands {
		if err := h.strike(); err != nil {
			return time.Time{}, err
		}
	}
	return st.store.Now(ctx)
}

// wedged kills both workers and shows that everything looks busy, and stands still.
func (st *stage) wedged(ctx context.Context) error {
	victims := slices.Clone(st.hands)
	if _, err := st.kill(ctx); err != nil {
		return err
	}
	st.say("Both, %d and %d, are killed with SIGKILL in the middle of it. Nobody tells the store.", victims[0].pid(), victims[1].pid())
	third, err := st.hire(ctx, hand{topics: []string{demoReceipts, demoLetters}, at: 4, takes: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	st.say("A third worker is started, process %d, as one does. It sends the letter to cyd, and then:\n", third.pid())
	var stuck projections.Topic
	err = st.until(ctx, "the killed ones are silent, a letter is sent and one is blocked", func(l *look) bool {
		letters, _ := l.state.Topics.Topic(demoLetters)
		for _, w := range l.state.Workers.All() {
			if w.PID != third.pid() && l.of(w.ID).dead == "" {
				return false
			}
		}
		stuck = receiptsOf(l)
		return letters.Completed == 1 && letters.Blocked == 1
	})
	if err != nil {
		return err
	}
	if err := st.shell(ctx, 0, "topics"); err != nil {
		return err
	}
	st.say("Wedged, and looking busy: %d of %d are running, as before. Nothing in these counts is wrong, and no restart\n"+
		"helps, for the slots are counted from the same claims. What tells is the age of the oldest claim, and who\n"+
		"holds it:\n", stuck.Running, stuck.Limit)
	if err := st.shell(ctx, 0, "topics", demoReceipts, "--after", demoAfter.String()); err != nil {
		return err
	}
	st.say("They died with their locks, too, and the letter to ann waits for hers although letters have no limit:\n")
	return st.shell(ctx, 0, "locks", "--after", demoAfter.String())
}

// ending is how both acts end: the work is finished, a rescued message's life, and the log is checked.
func (st *stage) ending(ctx context.Context) error {
	err := st.until(ctx, "everything is sent", func(l *look) bool {
		return !slices.ContainsFunc(l.state.Topics.All(), func(t projections.Topic) bool { return t.Queued+t.Blocked+t.Running > 0 })
	})
	if err != nil {
		return err
	}
	if err := st.shell(ctx, 0, "status"); err != nil {
		return err
	}
	if st.proofless {
		st.say("One of the two receipts whose workers were killed, from its beginning to its end:\n")
		if err := st.shell(ctx, 0, "trace", shorten(0, st.rescued).text(st.rescued)); err != nil {
			return err
		}
	}
	st.say("The log and the state agree, with each other and with the rules:\n")
	return st.shell(ctx, 0, "verify")
}
