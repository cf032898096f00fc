package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
)

// look is a step that commits nothing new, and gives its text.
type look func(ctx context.Context, w *World, l *line, input string) (string, error)

var looks = map[string]look{
	"again":     lookAgain,
	"log":       lookLog,
	"state":     lookState,
	"permits":   lookPermits,
	"waiting":   lookWaiting,
	"lease":     lookLease,
	"verify":    lookVerify,
	"contents":  lookContents,
	"beginning": lookBeginning,
	"expect":    lookExpect,
	"silence":   lookSilence,
	"kill":      lookKill,
	"still":     lookStill,
	"set-clock": lookSetClock,
	"blind":     lookBlind,
	"sighted":   lookSighted,

	"checkpoint": lookCheckpoint,
}

// lookAgain sends the last calls once more. One that was committed has the same receipt and no second effect, even when its rule has
// become another one; one that left nothing would be decided anew, so it is sent by itself only.
func lookAgain(ctx context.Context, w *World, l *line, _ string) (string, error) {
	other := l.flag("other")
	for _, s := range w.last {
		if len(s.receipt.Events) == 0 && (other || len(w.last) > 1) {
			continue
		}
		if other {
			s.call.Fn = func(store.View) (store.Changes, error) { return store.Changes{}, errors.New("decided twice") }
		}
		receipts, err := w.store.Decide(ctx, s.call)
		if err != nil {
			return "", err
		}
		if got, want := fmt.Sprint(receipts[0].Err), fmt.Sprint(s.receipt.Err); got != want {
			return "", fmt.Errorf("again: %s, at first it was %s", got, want)
		}
		if err := w.same(receipts[0].Events, s.receipt.Events); err != nil {
			return "", fmt.Errorf("again: another receipt: %w", err)
		}
	}
	fresh, err := w.follow(ctx)
	if err == nil && len(fresh) > 0 {
		err = fmt.Errorf("again: a second effect: %s", w.names.text.Line(fresh[0]))
	}
	return "", err
}

func lookLog(_ context.Context, w *World, l *line, _ string) (string, error) {
	var b strings.Builder
	if len(l.words) == 0 {
		for _, r := range w.log[w.shown:] {
			fmt.Fprintln(&b, w.names.text.Line(r))
		}
		w.shown = len(w.log)
		return b.String(), nil
	}
	entity := w.names.entity(l.word("entity"), w.log)
	for _, r := range w.log {
		if r.Entity == entity {
			fmt.Fprintln(&b, w.names.text.Line(r))
		}
	}
	return b.String(), nil
}

// lookState tells what the store keeps of some entities, or of all.
func lookState(ctx context.Context, w *World, l *line, _ string) (string, error) {
	f := store.RowFilter{}
	for _, word := range l.rest() {
		f.Entities = append(f.Entities, w.names.entity(word, w.log))
	}
	var b strings.Builder
	for row, err := range w.engine.Rows(ctx, f) {
		if err != nil {
			return "", err
		}
		v, err := calls.Value(row)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s v%d%s", w.names.text.Entity(row.Entity), row.Version, w.names.text.Fields(v))
		if row.Entity.Kind == events.KindTopic {
			fmt.Fprintf(&b, " running=%d", row.Running)
		}
		fmt.Fprintln(&b)
	}
	return b.String(), nil
}

func lookVerify(ctx context.Context, w *World, _ *line, _ string) (string, error) {
	report, err := replay.Verify(ctx, w.engine, replay.Options{Payloads: true})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, v := range report.Violations {
		fmt.Fprintln(&b, v.Text(w.names.text))
	}
	for _, text := range report.Unchecked {
		fmt.Fprintln(&b, "unchecked:", text)
	}
	fmt.Fprintf(&b, "%d events, %d violations\n", report.Events, len(report.Violations))
	return b.String(), nil
}

// lookPermits tells which permits are out: of one lock, or of all.
func lookPermits(ctx context.Context, w *World, l *line, _ string) (string, error) {
	f := store.PermitFilter{}
	if len(l.words) > 0 {
		f.Lock = l.word("lock")
	}
	var b strings.Builder
	for p, err := range w.engine.Permits(ctx, f) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "lock %s token=%d worker=%s", p.Lock, p.Token, w.names.word(p.Worker))
		if p.Message != (events.ID{}) {
			fmt.Fprintf(&b, " message=%s", w.names.word(p.Message))
		}
		fmt.Fprintf(&b, " acquired=%s", since(p.AcquiredAt))
		if !p.ExpiresAt.IsZero() {
			fmt.Fprintf(&b, " expires=%s", since(p.ExpiresAt))
		}
		fmt.Fprintln(&b)
	}
	return b.String(), nil
}

// lookWaiting tells of every lock and topic that has blocked messages the first of them, as the beat finds them.
func lookWaiting(ctx context.Context, w *World, _ *line, _ string) (string, error) {
	var b strings.Builder
	for row, err := range w.engine.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Select: store.FirstWaits}) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "lock %s topic %s: %s\n", row.Lock, row.Topic, w.names.text.Entity(row.Entity))
	}
	return b.String(), nil
}

// lookLease tells who leads the beat by its lease.
func lookLease(ctx context.Context, w *World, _ *line, _ string) (string, error) {
	lease, err := w.lease(ctx)
	if err != nil || lease.Term == 0 {
		return "", err
	}
	holder := "nobody"
	if lease.Holder != (events.ID{}) {
		holder = w.names.word(lease.Holder)
	}
	text := fmt.Sprintf("%s term=%d until=%s", holder, lease.Term, since(lease.UntilAt))
	if !lease.SweptAt.IsZero() {
		text += " swept=" + since(lease.SweptAt)
	}
	return text + "\n", nil
}
