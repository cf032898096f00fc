package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

func newErase(a *app) *cobra.Command {
	var w wish
	cmd := &cobra.Command{
		Use:   "erase ID…",
		Short: "Let the payloads and results of messages that have ended go, for good",
		Long: actHelp + "\n\nNobody can show afterwards what they were. What else the log says of the messages stays, and who erased them and why is added to\n" +
			"it. An open message and a dead letter keep theirs: cancel them first. What a handler was given, other systems hold and backups have is\n" +
			"not touched.",
		Args: cobra.RangeArgs(1, maxActed),
		RunE: func(cmd *cobra.Command, args []string) error { return a.erase(cmd.Context(), w, args) },
	}
	wishFlags(cmd, &w)
	printing(a, cmd)
	return cmd
}

// erasure is what would become of the contents of a message.
type erasure struct {
	message foundling.MessageInfo
	outcome actOutcome
	refused string // why it is left alone; empty where it is not
}

// bytes is how much would go.
func (e erasure) bytes() (payload, result int) {
	if !e.message.Payload.Erased {
		payload = e.message.Payload.Size
	}
	if !e.message.Result.Erased {
		result = e.message.Result.Size
	}
	return payload, result
}

// erasing is an erasing as far as it has come.
type erasing struct {
	*app
	wish
	client *foundling.Client
	store  store.Store
	list   []erasure
	names  *events.Names
}

func (a *app) erase(ctx context.Context, w wish, words []string) error {
	if err := w.check("erase"); err != nil {
		return err
	}
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ids, err := resolveEach(ctx, s, words)
	if err != nil {
		return err
	}
	client, err := a.client(s, "erase")
	if err != nil {
		return err
	}
	e := &erasing{app: a, wish: w, client: client, store: s, names: a.inFull(namesFor(shorten(0, ids...)))}
	if e.list, err = e.plan(ctx, ids); err != nil {
		return err
	}
	if err := e.show(); err != nil {
		return err
	}
	if err := e.decide(); err != nil {
		return errors.Join(e.printJSON(ctx), err)
	}
	if err := e.carryOut(ctx, ids); err != nil {
		return err
	}
	return e.conclude(ctx)
}

// plan says what would become of each message.
func (e *erasing) plan(ctx context.Context, ids []events.ID) ([]erasure, error) {
	list := make([]erasure, len(ids))
	for i, id := range ids {
		m, err := e.client.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		x := erasure{message: m, outcome: plannedOutcome}
		payload, result := x.bytes()
		switch {
		case !m.Ended():
			x.outcome, x.refused = refusedOutcome, fmt.Sprintf("it is %s: cancel it first", m.State)
		case payload+result == 0 && !m.BeginningPruned: // else how much there is may not be known
			x.outcome = nothingOutcome
		}
		list[i] = x
	}
	return list, nil
}

func (e *erasing) show() error {
	if !e.forPeople() {
		return nil // all of it comes in one object
	}
	t := newTable("MESSAGE", "TOPIC", "IS", ">PAYLOAD", ">RESULT", "WOULD LOSE")
	for _, x := range e.list[:min(len(e.list), mostShown)] {
		m := x.message
		payload, result := x.bytes()
		lose := fmt.Sprintf("its %s for good", count(payload+result, "byte"))
		if payload+result == 0 {
			lose = "what is kept of it, for good"
		}
		switch x.outcome {
		case refusedOutcome:
			lose = "refused: " + x.refused
		case nothingOutcome:
			lose = "nothing: they are kept no more"
		}
		t.add(e.names.ID(m.ID), orUnknown(harmless(m.Topic)), m.State.String(), number(payload), number(result), lose)
	}
	text := t.text()
	if more := len(e.list) - mostShown; more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	_, err := io.WriteString(e.stdout, text)
	return err
}

func (e *erasing) count(outcome actOutcome) int {
	n := 0
	for _, x := range e.list {
		if x.outcome == outcome {
			n++
		}
	}
	return n
}

// decide gets a yes for what can be done.
func (e *erasing) decide() error {
	n := e.count(plannedOutcome)
	switch {
	case n == 0 && e.count(refusedOutcome) > 0:
		return &exitError{exitConflict, errors.New("nothing to erase: what is open, or a dead letter, keeps its payload: cancel it first")}
	case n == 0, e.yes:
		return nil
	}
	return e.confirm("erase what was in " + count(n, "message"))
}

// carryOut erases what is as it was.
func (e *erasing) carryOut(ctx context.Context, ids []events.ID) error {
	again, err := e.plan(ctx, ids)
	if err != nil {
		return err
	}
	var doable []events.ID
	place := map[events.ID]int{}
	for i := range e.list {
		x := &e.list[i]
		switch {
		case x.outcome != plannedOutcome:
		case again[i].outcome != plannedOutcome || again[i].message.State != x.message.State:
			x.outcome = movedOutcome
		default:
			x.outcome = doneOutcome
			place[x.message.ID] = i
			doable = append(doable, x.message.ID)
		}
	}
	err = e.client.Erase(ctx, e.reason, doable...)
	late := refusals(err)
	if err != nil && len(late) == 0 {
		return err
	}
	for _, r := range late {
		e.list[place[r.Entity.ID]].outcome, e.list[place[r.Entity.ID]].refused = movedOutcome, r.Error()
	}
	return nil
}

// conclude says what was done, and gives the exit code.
func (e *erasing) conclude(ctx context.Context) error {
	if err := e.printJSON(ctx); err != nil {
		return err
	}
	if done := e.count(doneOutcome); e.forPeople() && done > 0 {
		if _, err := fmt.Fprintf(e.stdout, "erased: %d\n", done); err != nil {
			return err
		}
	}
	var moved error
	for _, x := range e.list {
		if x.outcome == movedOutcome {
			moved = errors.Join(moved, fmt.Errorf("%s was left alone: it moved since this was said of it", e.names.ID(x.message.ID)))
		}
	}
	switch {
	case moved != nil:
		return &exitError{exitConflict, moved}
	case e.count(refusedOutcome) > 0:
		return exit(exitFinding)
	}
	return nil
}

// jsonErasure is what would become of a message's contents, and what did, as JSON has it.
type jsonErasure struct {
	Message string     `json:"message"`
	Topic   *string    `json:"topic"`
	State   string     `json:"state"`
	Payload int        `json:"payload_bytes"` // that go with it
	Result  int        `json:"result_bytes"`
	Refused *string    `json:"refused"` // why it is left alone
	Outcome actOutcome `json:"outcome"`
}

func (e *erasing) printJSON(ctx context.Context) error {
	if e.forPeople() {
		return nil
	}
	now, err := e.store.Now(ctx)
	if err != nil {
		return err
	}
	d := document[jsonErasure]{Schema: "foundling.erase/v1", AsOf: atTime(now), Result: jsonActed{
		Reason: e.reason, Done: e.count(doneOutcome), Refused: e.count(refusedOutcome), Moved: e.count(movedOutcome),
	}}
	for _, x := range e.list {
		payload, result := x.bytes()
		m := x.message
		d.Items = append(d.Items, jsonErasure{m.ID.String(), orNull(m.Topic), m.State.String(), payload, result, orNull(x.refused), x.outcome})
	}
	return printJSON(e.app, d)
}
