package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/spf13/cobra"
)

// The settings of the demonstration, shortened so that nobody has to wait.
const (
	demoHeartbeat = 500 * time.Millisecond
	demoAfter     = 3 * time.Second
	demoGrace     = time.Second
	// demoPatience is how long it may take in all before something is wrong with it.
	demoPatience = 40 * time.Second
)

// The topics and users of the demonstration.
const (
	demoReceipts = "receipts"
	demoLetters  = "letters"
	demoLimit    = 2
)

func newDemo(a *app) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what becomes of work whose worker is killed, in half a minute",
		Long: "Real processes work on a store in a temporary directory and are killed with SIGKILL; what is shown is what the other commands print.\n" +
			"First as where nobody can prove that a process has ended, so that silence is the only evidence, then with proof.\n" +
			"Its stores are files of its own: it takes neither --store nor --batch, and leaves $FOUNDLING_STORE alone.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.store != "" || a.batch != "" {
				return usage("demo has stores of its own: give neither --store nor --batch")
			}
			ctx, release := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			return a.demo(ctx, keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the stores, and say where they are")
	return cmd
}

// demo tells the story, and leaves nothing behind unless it is asked to.
func (a *app) demo(ctx context.Context, keep bool) error {
	dir, err := os.MkdirTemp("", "foundling-demo-")
	if err != nil {
		return &exitError{exitStore, err}
	}
	d := &demo{app: a, dir: dir}
	bounded, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	err = d.tell(bounded)
	if keep {
		fmt.Fprintf(a.stderr, "kept: %s and proof.db beside it\n", findings.ShellWord(filepath.Join(dir, "silence.db")))
	} else {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	switch {
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, errors.New("interrupted")}
	case bounded.Err() != nil:
		return &exitError{exitFinding, fmt.Errorf("the demonstration was not over after %s: %w", demoPatience, err)}
	}
	return err
}

// demo is the demonstration as it goes on.
type demo struct {
	*app
	dir string
}

// tell is the story: its settings, then the two acts.
func (d *demo) tell(ctx context.Context) error {
	began := time.Now()
	d.say("What becomes of work whose worker is killed?\n")
	d.say("The settings, shortened so that nobody has to wait:\n")
	t := newTable("  SETTING", ">HERE", ">BY DEFAULT", "")
	for _, s := range []struct {
		name           string
		here, standard time.Duration
		means          string
	}{
		{"heartbeat_interval", demoHeartbeat, fsm.DefaultHeartbeatInterval, "how often a worker says that it lives"},
		{"orphan_reclaim_after", demoAfter, fsm.DefaultReclaimAfter, "a worker that is silent for longer counts as dead"},
		{"orphan_claim_grace", demoGrace, fsm.DefaultClaimGrace, "what a silent worker took less long ago is left alone"},
	} {
		t.add("  "+s.name, findings.Span(s.here), findings.Span(s.standard), s.means)
	}
	t.add("  orphan_reclaim_enabled", "false", "true", "workers sweep by themselves; here it is done by hand, to be seen")
	d.say("%s", strings.TrimSuffix(t.text(), "\n"))
	if err := d.act(ctx, stage{demo: d, name: "silence", proofless: true}, (*stage).silence); err != nil {
		return err
	}
	if err := d.act(ctx, stage{demo: d, name: "proof"}, (*stage).proof); err != nil {
		return err
	}
	d.say("That was all, in %s. What each part means: foundling help sweep.", findings.Span(time.Since(began)))
	return nil
}

// act plays one act on a store of its own.
func (d *demo) act(ctx context.Context, st stage, play func(*stage, context.Context) error) (err error) {
	st.path = filepath.Join(d.dir, st.name+".db")
	s, err := sqlite.Open(ctx, st.path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	st.store = s
	if st.proofless {
		st.store = withoutProof(s)
	}
	if st.client, err = foundling.NewClient(st.store, foundling.ClientOptions{Actor: d.actor("demo"), Logger: d.logger()}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.dismiss(ctx)) }()
	return play(&st, ctx)
}

// silence is the first act: nobody can prove that a process has ended.
func (st *stage) silence(ctx context.Context) error {
	st.say("\n1 · Where silence is the only evidence\n")
	st.say("The store is opened without proof of death, as in a network file system: nobody can know for certain there\n" +
		"that a process has ended.\n\n" +
		"Six receipts are to be sent, two at once at most, over all processes: that is the limit of their topic. Two\n" +
		"letters are to be sent, without a limit. Each takes the lock of its user, so that nobody is written to twice\n" +
		"at once. Two workers, processes of their own, have taken a receipt each:\n")
	if err := st.opening(ctx); err != nil {
		return err
	}
	if err := st.wedged(ctx); err != nil {
		return err
	}
	st.say("So it has to be swept. At once?\n")
	sweep := []string{"sweep", "--after", demoAfter.String(), "--grace", demoGrace.String(), "--heartbeat-interval", demoHeartbeat.String()}
	if err := st.shell(ctx, exitRefused, append(sweep, "--wait", "0s")...); err != nil {
		return err
	}
	st.say("It refuses, and changes nothing but the log, which keeps the refusal. After an outage everybody looks\n"+
		"silent: whoever takes silence for death must have been heard himself for all of the %s, so that the others\n"+
		"had the same chance. A sweep that has just begun has not been. Given time, it waits for that:\n", findings.Span(demoAfter))
	if err := st.shell(ctx, 0, sweep...); err != nil {
		return err
	}
	st.say("The third worker takes up what came back, and finishes the rest:\n")
	return st.ending(ctx)
}

// proof is the second act: the kernel tells that a process has ended.
func (st *stage) proof(ctx context.Context) error {
	st.say("2 · The same with proof of death\n")
	st.say("The same work, begun by two other workers, on a store where proof is to be had:\n")
	if err := st.opening(ctx); err != nil {
		return err
	}
	if !st.provable {
		st.say("In %s, though, no proof is to be had: its file system is not known to be of this machine alone. So this\npart is left out.\n", os.TempDir())
		return nil
	}
	killed, err := st.kill(ctx)
	if err != nil {
		return err
	}
	st.say("Both are killed, with SIGKILL. Each held a lock on a file beside the store, which the kernel let go. That\n" +
		"proves its end, and waits for nothing: this sweep has the default settings, of minutes.\n")
	if err := st.shell(ctx, 0, "sweep"); err != nil {
		return err
	}
	lost, err := st.last(ctx, events.TypeWorkerLost)
	if err != nil {
		return err
	}
	st.say("That was %s after the kill, by the store's clock. Another worker finishes the rest:\n", findings.Span(lost.Sub(killed)))
	if _, err := st.hire(ctx, hand{topics: []string{demoReceipts, demoLetters}, at: 4, takes: 50 * time.Millisecond}); err != nil {
		return err
	}
	return st.ending(ctx)
}
