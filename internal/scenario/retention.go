package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/reaper"
	"github.com/foundling-go/foundling/store"
)

// pruner reads how somebody lets go of what is older than a time.
func (w *World) pruner(l *line) (reaper.Prune, error) {
	p := reaper.Prune{
		Store: w.store, Decide: w.decide, Retention: days(l, "older"), Commits: l.number("commits", 0), Events: l.number("events", 0),
		Rows: l.number("rows", 0), By: l.text("by"), Detail: l.text("detail"),
	}
	if p.Retention <= 0 {
		l.fail("older= says how old what goes must be")
	}
	return p, l.end()
}

// runPrune lets go of what is older than a time; with the word plan it only says what would go.
func runPrune(ctx context.Context, w *World, l *line, _ string) (Result, error) {
	plan := l.flag("plan")
	p, err := w.pruner(l)
	if err != nil {
		return Result{}, err
	}
	return w.tell(ctx, func(said *strings.Builder) error {
		run := p.Run
		if plan {
			run = p.Plan
		}
		report, err := run(ctx)
		fmt.Fprintln(said, w.pruned(report))
		return err
	})
}

// pruned is what came of a prune, in words.
func (w *World) pruned(r reaper.Pruned) string {
	text := fmt.Sprintf("%d events, %d told", r.Events, r.Told)
	if r.Through > 0 {
		text += ", until " + since(r.UntilAt)
	}
	if r.Commits > 0 {
		text += fmt.Sprintf(", %d commits", r.Commits)
	}
	if !r.Done {
		text += ", more to go"
	}
	if r.Held.Name != "" {
		text += fmt.Sprintf(", held back by %s", r.Held.Name)
	}
	return text
}

// days takes the duration of key, which may be said in days, as in 90d.
func days(l *line, key string) time.Duration {
	text := l.text(key)
	if n, ok := strings.CutSuffix(text, "d"); ok {
		return 24 * l.duration(key, n+"h")
	}
	if text == "" {
		return 0
	}
	return l.duration(key, text)
}

// prepareErase lets the contents of messages go at somebody's wish.
func prepareErase(_ context.Context, w *World, l *line, _ string) (*step, error) {
	o, err := w.origin()
	c := fsm.Erase{By: l.text("by"), Detail: l.text("detail")}
	for _, word := range l.rest() {
		id, unknown := w.names.id(word)
		if unknown != nil {
			return nil, unknown
		}
		c.IDs = append(c.IDs, id)
	}
	if len(c.IDs) == 0 {
		return nil, errors.New("erase: which message?")
	}
	call, refusals := calls.Erase(o, c)
	return &step{call: call, notes: refused(refusals)}, err
}

// lookCheckpoint saves where a durable projection has come to: to the end of the log, or nowhere yet.
func lookCheckpoint(ctx context.Context, w *World, l *line, _ string) (string, error) {
	shelf, ok := store.As[store.Shelf](w.engine)
	if !ok {
		return "", errors.New("the engine keeps no checkpoints")
	}
	c := store.Checkpoint{
		CheckpointKey: store.CheckpointKey{Name: l.word("name"), Version: l.number("version", 1), Sequence: l.number("sequence", 1)},
		Cursor:        w.head, View: []byte("{}"),
	}
	if l.flag("nowhere") {
		c.Cursor = ""
	}
	if err := l.end(); err != nil {
		return "", err
	}
	_, err := shelf.Save(ctx, c)
	return "", err
}

// lookContents tells what is kept of messages beside their events.
func lookContents(ctx context.Context, w *World, l *line, _ string) (string, error) {
	var b strings.Builder
	for _, word := range l.rest() {
		id, err := w.names.id(word)
		if err != nil {
			return "", err
		}
		c, err := w.engine.Contents(ctx, id)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s payload=%s result=%s\n", word, bytesOf(c.Payload), bytesOf(c.Result))
	}
	return b.String(), nil
}

func bytesOf(p *store.Payload) string {
	if p == nil {
		return "none"
	}
	return events.Printable(fmt.Sprintf("%q", p.Bytes), 0)
}

// lookBeginning tells what the log begins with, and that whoever reads from the beginning hears that it is gone.
func lookBeginning(ctx context.Context, w *World, _ *line, _ string) (string, error) {
	oldest, err := store.Oldest(ctx, w.engine)
	if err != nil {
		return "", err
	}
	kept := 0
	for _, err := range w.engine.Read(ctx, oldest, store.Filter{}) {
		if err != nil {
			return "", err
		}
		kept++
	}
	for _, err := range w.engine.Read(ctx, "", store.Filter{Limit: 1}) {
		if gone := errors.Is(err, store.ErrPruned); gone != (oldest != "") || err != nil && !gone {
			return "", fmt.Errorf("read from the beginning: %w", err)
		}
	}
	if kept > len(w.log) {
		return "", fmt.Errorf("%d events are kept, %d were told", kept, len(w.log))
	}
	return fmt.Sprintf("%d of %d events are kept\n", kept, len(w.log)), nil
}
