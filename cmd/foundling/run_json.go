package main

import (
	"context"
	"errors"
)

// jsonBatch is what came of a batch as JSON has it.
type jsonBatch struct {
	Batch        string  `json:"batch"`
	Completed    int     `json:"completed"`
	Again        int     `json:"completed_again"` // of those that this process ran, at a later attempt
	DeadLettered int     `json:"dead_lettered"`
	Cancelled    int     `json:"cancelled"`
	Running      int     `json:"running"` // elsewhere
	Waiting      int     `json:"waiting"`
	InputMissing bool    `json:"input_missing"` // an input was not read to its end: give it again
	Resume       *string `json:"resume"`        // the command that goes on; null where nothing is left
}

// jsonDeadLine is a line that is a dead letter as JSON has it.
type jsonDeadLine struct {
	Message  string       `json:"message"`
	Line     *jsonContent `json:"line"`
	Attempts int          `json:"attempts"`
	Error    string       `json:"error"`
}

// ending is how a batch stands when this process is done with it.
type ending struct {
	now    counted
	unread bool
	outcome
}

// concludeJSON says what became of the batch as one object, on standard error since standard output is the children's, and gives the exit code.
func (b *batch) concludeJSON(ctx context.Context, out *console, e ending) error {
	dead, err := b.dead(ctx)
	at, unknown := b.store.Now(ctx)
	if err := errors.Join(err, unknown); err != nil {
		return err
	}
	result := jsonBatch{
		Batch: b.name, Completed: e.now.done, Again: e.now.again, DeadLettered: e.now.dead, Cancelled: e.now.cancelled, Running: e.now.running,
		Waiting: e.now.waiting, InputMissing: e.unread,
	}
	if e.now.open()+e.now.dead > 0 || e.unread {
		result.Resume = orNull(b.resumeWith())
	}
	d := document[jsonDeadLine]{
		Schema: "foundling.run/v1", AsOf: atTime(at), Store: orNull(b.app.storeName()), Truncated: e.interrupted || e.now.dead > len(dead), Result: result,
		Warnings: []string{}, Items: []jsonDeadLine{},
	}
	for _, line := range dead {
		d.Items = append(d.Items, jsonDeadLine{line.id.String(), b.app.jsonContent(line.content), line.attempts, line.why})
	}
	err = out.piece(func() error { return writeJSON(out.own, d) })
	switch {
	case e.interrupted:
		return exit(exitInterrupted)
	case e.err != nil:
		return &hinted{e.err, "resume with: " + b.resumeWith()}
	case e.now.dead > 0 || e.unread || e.reading != nil && e.reading.tooLong.Load() > 0:
		return exit(exitFinding)
	}
	return err
}
