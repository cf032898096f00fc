package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// deadShown is how many dead letters the end names.
const deadShown = 10

// outcome is how this process's part in a batch ended.
type outcome struct {
	err         error
	interrupted bool
	reading     *reading
}

// settle ends the messages of the batch and its inputs once no line is left, and reports whether that is done. The batch is completed
// only when all inputs were read to their ends; otherwise it is given back, and whoever still reads goes on with it. waited is since when no line is left.
func (b *batch) settle(ctx context.Context, reading *reading, t *tally, waited time.Duration) (bool, error) {
	inputs, err := b.openInputs(ctx)
	if err != nil {
		return false, err
	}
	for _, in := range inputs {
		switch {
		case in.id == b.input && waited > inputWait:
			return false, b.endInput(ctx)
		case in.id == b.input, reading.cover(in, t): // this worker's to complete, now that it has read its own to the end
			return false, nil
		}
	}
	if t.now().dead > 0 || len(inputs) > 0 {
		b.giveBack()
		return true, nil
	}
	b.finish()
	return b.settled(ctx)
}

// endInput ends the message of this process's input, which was read to its end, where its worker does not come by it: another one that looks after
// inputs may have it again and again.
func (b *batch) endInput(ctx context.Context) error {
	return b.cancel(ctx, "it was read to its end, and its process did not come by the message that says so", b.input)
}

// settled reports whether the message of the batch is completed, or is another process's to complete.
func (b *batch) settled(ctx context.Context) (bool, error) {
	for row, err := range b.store.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: topicBatch}) {
		if err != nil {
			return false, err
		}
		if row.State == events.DeadLettered {
			continue
		}
		if row.State == events.Queued {
			return false, nil
		}
		known, err := b.peers(ctx)
		holder, ok := known[row.Worker]
		return ok && holder.process != thisProcess() && holder.life == living, err
	}
	return true, nil
}

// conclude says what became of the batch and gives the exit code.
func (b *batch) conclude(ctx context.Context, out *console, t *tally, o outcome) error {
	now := t.now()
	unread, err := b.unread(ctx)
	if err != nil {
		return errors.Join(o.err, err)
	}
	if b.app.objects() {
		return b.concludeJSON(ctx, out, ending{now, unread, o})
	}
	if o.interrupted {
		out.say("%s: %s done · %s to go · resume with: %s", b.name, comma(now.done), comma(now.open()), b.resumeWith())
		if unread {
			out.warn("%s: the input was not read to its end: give it again to add the rest", b.name)
		}
		return exit(exitInterrupted)
	}
	if o.err != nil {
		return fmt.Errorf("%w; resume with: %s", o.err, b.resumeWith())
	}
	dead, err := b.dead(ctx)
	if err != nil {
		return err
	}
	if b.plan != nil || now.dead > 0 {
		b.sum(out, now, dead)
	}
	if unread {
		out.warn("%s: the input was not read to its end by a process that is gone: give it again to add the rest", b.name)
	}
	if now.dead > 0 || unread || o.reading != nil && o.reading.tooLong.Load() > 0 {
		return exit(exitFinding)
	}
	return nil
}

// sum is the last line, with the dead letters below it.
func (b *batch) sum(out *console, now counted, dead []deadLine) {
	mark := "✔"
	if now.dead > 0 {
		mark = "✖"
	}
	parts := []string{fmt.Sprintf("%s completed", comma(now.done))}
	if now.again > 0 {
		parts[0] += fmt.Sprintf(", %s of them at a later attempt", comma(now.again))
	}
	if now.dead > 0 {
		parts = append(parts, fmt.Sprintf("%s dead-lettered", comma(now.dead)))
	}
	if now.cancelled > 0 {
		parts = append(parts, fmt.Sprintf("%s cancelled", comma(now.cancelled)))
	}
	if len(dead) == 0 {
		out.say("%s %s", mark, strings.Join(parts, " · "))
		return
	}
	out.warn("%s %s", mark, strings.Join(parts, " · "))
	ids := make([]foundling.ID, len(dead))
	for i, d := range dead {
		ids[i] = d.id
	}
	short := shorten(int64(now.all()), ids...)
	names := make([]string, len(dead))
	for i, d := range dead {
		names[i] = short.text(d.id)
		out.warn("  %s  %s  after %s: %s", names[i], harmless(string(b.app.redactor.content(d.content.Bytes))), count(d.attempts, "attempt"), d.why)
		out.warn("      foundling trace %s %s", names[i], b.flag())
	}
	which := strings.Join(names, " ")
	if now.dead > len(dead) {
		out.warn("  and %s more: foundling status %s", comma(now.dead-len(dead)), b.flag())
		which = "--topic " + topicLines
	}
	out.warn("  again:  foundling redrive %s --reason fixed --yes %s && %s", which, b.flag(), b.resumeWith())
}

// deadLine is a dead letter as the end shows it.
type deadLine struct {
	id       foundling.ID
	content  foundling.Content
	why      string
	attempts int
}

// dead is the first dead letters of the batch, each with its last error.
func (b *batch) dead(ctx context.Context) ([]deadLine, error) {
	var list []deadLine
	var rows []store.Row
	for row, err := range b.store.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: topicLines, Payloads: true}) {
		if err != nil {
			return nil, err
		}
		if row.State == events.DeadLettered {
			rows = append(rows, row)
		}
		if len(rows) == deadShown {
			break
		}
	}
	for _, row := range rows {
		d := deadLine{id: row.Entity.ID}
		if row.Payload != nil {
			d.content = foundling.Content{Bytes: row.Payload.Bytes, Size: len(row.Payload.Bytes)}
		}
		for r, err := range logOf(ctx, b.store, store.Filter{Entity: row.Entity}) {
			if err != nil {
				return nil, err
			}
			switch e := r.Event.(type) {
			case *events.MessageClaimed:
				d.attempts = e.Attempt
			case *events.MessageDeadLettered:
				d.why = harmless(strings.Join(append([]string{e.Error}, reasonWords(e.Reason)...), " "))
			}
		}
		list = append(list, d)
	}
	return list, nil
}

// reasonWords explains a dead letter that has no error of its own.
func reasonWords(reason events.Reason) []string {
	if reason == events.ReasonOrphanLimit {
		return []string{"its process was gone too often"}
	}
	return nil
}

// unread reports whether an input of the batch was not read to its end, and nobody is there to do it.
func (b *batch) unread(ctx context.Context) (bool, error) {
	inputs, err := b.openInputs(ctx)
	lost := func(in openInput) bool { return in.id == b.input || !in.alive }
	return slices.ContainsFunc(inputs, lost), err
}

// withoutPlan is the end of a resume of a batch that does not say any more what to do: because all is done, as a rule.
func (b *batch) withoutPlan(ctx context.Context) error {
	t := newTally(b)
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	now := t.now()
	if now.open() > 0 {
		return &exitError{exitFinding, fmt.Errorf("batch %s: %s to go, and its COMMAND is not known any more: go on with: %s -- COMMAND",
			b.name, count(now.open(), "line"), b.resumeWith())}
	}
	if now.dead == 0 {
		b.app.console().say("%s: %s completed, nothing left to do", b.name, comma(now.done))
	}
	return b.conclude(ctx, b.app.console(), t, outcome{})
}

// removeOld removes finished batches that nobody has touched for longer than keep. What cannot be judged is left alone.
func (a *app) removeOld(ctx context.Context, keep time.Duration, not string) {
	dir, err := a.batchDir()
	if err != nil {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		return
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil || path == not || time.Since(info.ModTime()) < keep {
			continue
		}
		if a.finished(ctx, path) {
			if err := sqlite.Remove(path); err != nil {
				a.console().warn("foundling: finished batch %s was not removed: %v", path, err)
			}
		}
	}
}

// finished reports whether a batch has nothing left to do and nobody works on it.
func (a *app) finished(ctx context.Context, path string) bool {
	s, err := a.openFile(ctx, path, toMake)
	if err != nil {
		return false
	}
	defer s.Close()
	workers := map[events.ID]peer{}
	for _, kind := range []events.Kind{events.KindMessage, events.KindWorker} {
		for row, err := range s.Rows(ctx, store.RowFilter{Kind: kind}) {
			if err != nil || kind == events.KindMessage {
				return false
			}
			if workers[row.Entity.ID], err = peerOf(row); err != nil {
				return false
			}
		}
	}
	vitals, err := readVitals(ctx, s, runReclaimAfter, slices.Collect(maps.Keys(workers)))
	if err != nil || vitals.doubt != nil {
		return false
	}
	for id, p := range workers {
		if l := p.judge(vitals.of(id), false); l != gone && l != silent {
			return false
		}
	}
	return true
}
