package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// hints are the sentences about an engine that is a store.Waiter.
func hints() []sentence {
	return []sentence{
		{"a hint follows a commit that makes a message claimable", hinted},
		{"no hint is lost between Watch and the first claim", noneLost},
		{"a watch that has stopped closes nothing", func(b *bed) {
			hints, stop := b.watch("mail")
			stop()
			b.enqueue("mail", 1)
			select {
			case _, open := <-hints:
				want(b, "open", open, true)
			default:
			}
		}},
	}
}

func (b *bed) watch(topics ...string) (<-chan struct{}, func()) {
	waiter, _ := store.As[store.Waiter](b.s)
	return waiter.Watch(topics)
}

func hinted(b *bed) {
	p := b.acquire("l", b.id())
	b.queue("other", "l", 1)
	b.claim(b.id(), 1, "other")
	b.commit(b.configuring("mail", 1))
	b.enqueue("mail", 3)
	m := b.claim(b.id(), 1, "mail")
	paused := calls.OperateTopic(b.origin(), fsm.OperateTopic{Topic: "mail", Command: fsm.PauseTopic{}})
	resumed := calls.OperateTopic(b.origin(), fsm.OperateTopic{Topic: "mail", Command: fsm.ResumeTopic{}})
	for _, c := range []struct {
		what   string
		before []store.Call
		call   store.Call
	}{
		{"an enqueue", nil, b.enqueueing(b.draft("mail"))},
		{"a slot that came free", nil, b.completing(m...)},
		{"a topic that goes on", []store.Call{paused}, resumed},
		{"a limit that was raised", nil, b.configuring("mail", 9)},
		{"a lock that came free", nil, b.unlocking(p.Worker, p)},
	} {
		for _, call := range c.before {
			b.commit(call)
		}
		hints, stop := b.watch("other", "mail")
		b.commit(c.call)
		select {
		case <-hints:
		case <-time.After(patience):
			b.t.Errorf("no hint of %s", c.what)
		}
		stop()
	}
}

// noneLost has a claimer that waits for nothing but hints, while another goroutine enqueues.
func noneLost(b *bed) {
	const all = 60
	worker := b.id()
	var list []store.Call
	for i := range all {
		list = append(list, b.enqueueing(b.drafts("mail", 1+i%2)...))
	}
	wanted := all + all/2
	done := make(chan error, 1)
	hints, stop := b.watch("mail")
	defer stop()
	go func() {
		for _, call := range list {
			if _, err := b.s.Decide(b.ctx, call); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for claimed := 0; claimed < wanted; {
		granted := len(b.claim(worker, 3, "mail"))
		if claimed += granted; granted > 0 {
			continue
		}
		select {
		case <-hints:
		case <-time.After(patience):
			b.t.Fatalf("no hint after %d of %d messages", claimed, wanted)
		}
	}
	b.ok(<-done)
}

// beats are the sentences about an engine that is a store.Heart.
func beats() []sentence {
	return []sentence{
		{"the first beat makes a row, later ones renew it", beatsRenew},
		{"a later beat that finds no row is ErrNotBeating", notBeating},
		{"a beat is no event", beatNoEvent},
		{"Fn is given the newest beats that it named", viewBeats},
		{"with a worker's claims comes its newest beat", beatWithClaims},
		{"concurrent beats are all kept", beatsTogether},
	}
}

func (b *bed) heart() store.Heart {
	heart, _ := store.As[store.Heart](b.s)
	return heart
}

// beating is the incarnations that have a row, with the interval that each intends.
func (b *bed) beating() map[events.ID]store.Beat {
	b.t.Helper()
	list, err := b.heart().Beats(b.ctx)
	b.ok(err)
	all := map[events.ID]store.Beat{}
	for _, beat := range list {
		all[beat.Worker] = beat
	}
	want(b, "rows", len(list), len(all))
	return all
}

func beatsRenew(b *bed) {
	one, two := b.id(), b.id()
	want(b, "rows", len(b.beating()), 0)
	var last time.Time
	for i, beat := range []store.Beat{
		{Worker: one, First: true, Interval: time.Second}, {Worker: two, First: true, Interval: time.Minute, FenceAfter: time.Hour},
		{Worker: one, Interval: 2 * time.Second, FenceAfter: 3 * time.Second}, {Worker: two, Interval: time.Minute},
		{Worker: one, First: true, Interval: time.Hour, FenceAfter: 1500 * time.Microsecond},
	} {
		at, err := b.heart().Beat(b.ctx, beat)
		b.ok(err)
		want(b, "time in microseconds", at, at.Truncate(time.Microsecond))
		if at.Before(last) {
			b.t.Fatalf("beat %d at %s, the one before at %s", i, at, last)
		}
		kept := b.beating()[beat.Worker]
		want(b, "time", kept.At.Equal(at), true)
		want(b, "interval", kept.Interval, beat.Interval)
		want(b, "fence after", kept.FenceAfter, beat.FenceAfter)
		last = at
	}
	want(b, "rows", len(b.beating()), 2)
	now, err := b.s.Now(b.ctx)
	b.ok(err)
	if last.After(now) || now.Sub(last) > time.Minute {
		b.t.Fatalf("beat at %s, the store's time is %s", last, now)
	}
}

func notBeating(b *bed) {
	one, two := b.id(), b.id()
	_, err := b.heart().Beat(b.ctx, store.Beat{Worker: one, Interval: time.Second})
	b.is(err, store.ErrNotBeating)
	for _, w := range []events.ID{one, two} {
		_, err = b.heart().Beat(b.ctx, store.Beat{Worker: w, First: true, Interval: time.Second})
		b.ok(err)
	}
	b.ok(b.heart().Still(b.ctx, one))
	b.ok(b.heart().Still(b.ctx, one))
	_, err = b.heart().Beat(b.ctx, store.Beat{Worker: one, Interval: time.Second})
	b.is(err, store.ErrNotBeating)
	all := b.beating()
	want(b, "rows", len(all), 1)
	want(b, "interval of the other", all[two].Interval, time.Second)
}

func beatNoEvent(b *bed) {
	worker, head := b.id(), b.head()
	_, err := b.heart().Beat(b.ctx, store.Beat{Worker: worker, First: true, Interval: time.Second})
	b.ok(err)
	want(b, "head", b.head(), head)
	want(b, "rows", len(b.kept(store.RowFilter{})), 0)
}

func beatsTogether(b *bed) {
	const workers, each = 6, 5
	list := make([]events.ID, workers)
	for i := range list {
		list[i] = b.id()
	}
	b.ok(together(workers, func(i int) error {
		for n := range each {
			beat := store.Beat{Worker: list[i], First: n == 0, Interval: time.Duration(i+1) * time.Second}
			if _, err := b.heart().Beat(b.ctx, beat); err != nil {
				return err
			}
		}
		return nil
	}))
	all := b.beating()
	for i, w := range list {
		want(b, fmt.Sprintf("interval of worker %d", i), all[w].Interval, time.Duration(i+1)*time.Second)
	}
}

// beat makes an incarnation's beat.
func (b *bed) beat(beat store.Beat) store.Beat {
	b.t.Helper()
	at, err := b.heart().Beat(b.ctx, beat)
	b.ok(err)
	beat.At = at
	return beat
}

// exactBeat is a beat as text. Whether it was the first is nobody's business afterwards.
func exactBeat(beat store.Beat) string {
	return fmt.Sprintf("%s every %s fences after %s, at %s", beat.Worker, beat.Interval, beat.FenceAfter, beat.At.Format(time.RFC3339Nano))
}

func viewBeats(b *bed) {
	one, two, still := b.id(), b.id(), b.id()
	for _, w := range []events.ID{one, two, still} {
		b.beat(store.Beat{Worker: w, First: true, Interval: time.Minute})
	}
	b.ok(b.heart().Still(b.ctx, still))
	for i := range 3 {
		newest := b.beat(store.Beat{Worker: one, Interval: time.Duration(i+1) * time.Second, FenceAfter: time.Duration(i) * time.Minute})
		view := b.seen(store.Need{Beats: []events.ID{one, still, b.id(), one}})
		want(b, "beats", len(view.Beats), 1)
		want(b, "beat", exactBeat(view.Beats[one]), exactBeat(newest))
	}
	want(b, "beats that nobody named", len(b.seen(store.Need{}).Beats), 0)
}

func beatWithClaims(b *bed) {
	one, two, never := b.id(), b.id(), b.id()
	beats := map[events.ID]store.Beat{}
	for _, w := range []events.ID{one, two} {
		beats[w] = b.beat(store.Beat{Worker: w, First: true, Interval: time.Second, FenceAfter: time.Minute})
	}
	b.enqueue("mail", 1)
	b.claim(one, 1, "mail")
	view := b.seen(store.Need{Claims: []store.Holder{{Worker: one, N: 1}, {Worker: two, N: 1}, {Worker: never, N: 1}}})
	want(b, "beats", len(view.Beats), 2)
	for w, beat := range beats {
		want(b, "beat", exactBeat(view.Beats[w]), exactBeat(beat))
	}
	want(b, "beats of one worker", len(b.seen(store.Need{Claims: []store.Holder{{Worker: two, N: 1}}}).Beats), 1)
}

// proofs are the sentences about an engine that is a store.ProcessWatcher.
func proofs() []sentence {
	return []sentence{
		{"who is attested is not gone", attested},
		{"who never was attested is not gone", func(b *bed) {
			want(b, "gone", len(b.gone(b.id(), b.id())), 0)
			want(b, "gone of nobody", len(b.gone()), 0)
		}},
	}
}

func (b *bed) gone(workers ...events.ID) []events.ID {
	b.t.Helper()
	watcher, _ := store.As[store.ProcessWatcher](b.s)
	list, err := watcher.Gone(b.ctx, workers...)
	b.ok(err)
	return list
}

func attested(b *bed) {
	watcher, _ := store.As[store.ProcessWatcher](b.s)
	one, two := b.id(), b.id()
	for _, w := range []events.ID{one, two} {
		release, err := watcher.Attest(context.WithoutCancel(b.ctx), w)
		b.ok(err)
		b.t.Cleanup(func() {
			if err := release(); err != nil {
				b.t.Errorf("release: %v", err)
			}
		})
	}
	if gone := b.gone(one, b.id(), two); slices.Contains(gone, one) || slices.Contains(gone, two) {
		b.t.Fatalf("gone: %v, they hold their proof", gone)
	}
}
