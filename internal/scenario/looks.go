package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/projections/replay"
	"github.com/foundling-go/foundling/store"
)

// look is a step that commits nothing new, and gives its text.
type look func(ctx context.Context, w *World, l *line, input string) (string, error)

var looks = map[string]look{
	"advance": lookAdvance,
	"again":   lookAgain,
	"log":     lookLog,
	"state":   lookState,
	"verify":  lookVerify,
	"expect":  lookExpect,
}

func lookAdvance(_ context.Context, w *World, l *line, _ string) (string, error) {
	d, err := time.ParseDuration(l.word("duration"))
	if err == nil && d < 0 {
		err = fmt.Errorf("advance %s: time does not go back", d)
	}
	w.now.Add(int64(d))
	return "", err
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
