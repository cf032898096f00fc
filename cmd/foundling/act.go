package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// maxActed is how many messages one command line may name, and one commit takes.
const maxActed = 500

// wish is what everybody must say who asks for something to be done.
type wish struct {
	reason string
	yes    bool
}

func wishFlags(cmd *cobra.Command, w *wish) {
	cmd.Flags().StringVar(&w.reason, "reason", "", "why, for the log")
	cmd.Flags().BoolVar(&w.yes, "yes", false, "do not ask")
}

// check refuses a wish without a reason.
func (w wish) check(command string) error {
	if strings.TrimSpace(w.reason) == "" {
		return &exitError{exitRefused, &hinted{fmt.Errorf(`%s needs --reason "why"`, command), "it goes into the log"}}
	}
	return nil
}

// action is what an operator asks to be done to messages: it says what would become of each, asks, and does it.
type action struct {
	wish
	name      string // of the command
	done      string // what it says of what it did
	otherwise string // why a message in another state is left alone
	command   fsm.MessageCommand
	force     foundling.Force
	after     time.Duration // by which workers are judged
	carry     func(context.Context, *foundling.Client, ...events.ID) error

	ask func(what string) error // asks a person for a yes; nil is on the terminal
}

// act does to some messages what an operator asks for. Those that are not as they were when it said what it would do are left alone.
func (a *app) act(ctx context.Context, s store.Store, x action, ids []events.ID) error {
	plan, err := x.foresee(ctx, s, ids)
	if err != nil {
		return err
	}
	plan.names = a.inFull(plan.names)
	acted := &acted{app: a, action: x, plan: plan}
	if err := acted.show(); err != nil {
		return err
	}
	if err := acted.decide(); err != nil {
		return errors.Join(acted.printJSON(plan.now), err)
	}
	again, err := x.foresee(ctx, s, ids)
	if err != nil {
		return err
	}
	client, err := a.client(s, x.name)
	if err != nil {
		return err
	}
	if err := acted.carryOut(ctx, client, again); err != nil {
		return err
	}
	return acted.conclude(again.now)
}

// acted is how far an action has come.
type acted struct {
	*app
	action
	plan *foresight
}

// mostShown is how many messages of a plan are shown.
const mostShown = 50

// show prints what would become of each message.
func (d *acted) show() error {
	if !d.forPeople() {
		return nil // all of it comes in one object
	}
	list := d.plan.list
	text := d.plan.table(list[:min(len(list), mostShown)]).text()
	if more := len(list) - mostShown; more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	_, err := io.WriteString(d.stdout, text)
	return err
}

// decide gets a yes for what can be done.
func (d *acted) decide() error {
	doable := 0
	live := true // every refusal is for want of --force
	for _, p := range d.plan.list {
		if p.refusal == nil {
			doable++
			continue
		}
		live = live && p.refusal.Reason == events.ReasonAlive
	}
	what := fmt.Sprintf("%s %s", d.name, count(doable, "message"))
	switch {
	case doable == 0 && live:
		return &exitError{exitRefused, &hinted{fmt.Errorf("nothing to %s: who holds it lives", d.name), "--force takes it all the same"}}
	case doable == 0:
		return &exitError{exitConflict, fmt.Errorf("nothing to %s: %s", d.name, d.plan.list[0].why(d.otherwise))}
	case d.yes:
		return nil
	case d.ask != nil:
		return d.ask(what)
	}
	return d.confirm(what)
}

// carryOut does it to the messages that are as they were.
func (d *acted) carryOut(ctx context.Context, c *foundling.Client, again *foresight) error {
	var ids []events.ID
	place := map[events.ID]int{}
	for i := range d.plan.list {
		p := &d.plan.list[i]
		place[p.message.ID] = i
		switch {
		case p.refusal != nil:
		case !p.same(again.list[i]):
			p.outcome = movedOutcome
		default:
			p.outcome = doneOutcome
			ids = append(ids, p.message.ID)
		}
	}
	for page := range slices.Chunk(ids, maxActed) {
		err := d.carry(ctx, c, page...)
		if err != nil && !errors.As(err, new(*foundling.Refusal)) {
			return err
		}
		for _, r := range refusals(err) {
			d.plan.list[place[r.Entity.ID]].outcome, d.plan.list[place[r.Entity.ID]].late = movedOutcome, r
		}
	}
	return nil
}

// refusals is the refusals that an error joins.
func refusals(err error) []*foundling.Refusal {
	var list []*foundling.Refusal
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, one := range many.Unwrap() {
			list = append(list, refusals(one)...)
		}
		return list
	}
	var r *foundling.Refusal
	if errors.As(err, &r) {
		list = append(list, r)
	}
	return list
}

// conclude says what was done, and gives the exit code.
func (d *acted) conclude(now time.Time) error {
	n := d.plan.outcomes()
	if !d.forPeople() {
		if err := d.printJSON(now); err != nil {
			return err
		}
	} else if n[doneOutcome] > 0 {
		if _, err := fmt.Fprintf(d.stdout, "%s: %d\n", d.done, n[doneOutcome]); err != nil {
			return err
		}
	}
	var moved error
	for _, p := range d.plan.list {
		if p.outcome == movedOutcome {
			moved = errors.Join(moved, d.plan.movedError(p))
		}
	}
	switch {
	case moved != nil:
		return &exitError{exitConflict, moved}
	case n[refusedOutcome] > 0:
		return exit(exitFinding)
	}
	return nil
}

// confirm asks a person for a yes.
func (a *app) confirm(what string) error {
	if !isTerminal(a.stdin) {
		return &exitError{exitRefused, &hinted{fmt.Errorf("not done: to %s without a terminal to ask on", what), "give --yes"}}
	}
	fmt.Fprintf(a.stderr, "%s? [y/N] ", what)
	if screen, ok := a.stderr.(*screen); ok {
		if err := screen.Flush(); err != nil {
			return err
		}
	}
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
		return &exitError{exitRefused, errors.New("not done")}
	}
	return nil
}
