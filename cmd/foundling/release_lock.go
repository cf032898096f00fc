package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// releasing is what the command line of release-lock says.
type releasing struct {
	wish
	lock  string
	token int64
	one   bool // --token was given
	after time.Duration

	ask func(what string) error // asks a person for a yes; nil is on the terminal
}

func newReleaseLock(a *app) *cobra.Command {
	var r releasing
	cmd := &cobra.Command{
		Use:   "release-lock NAME",
		Short: "Take a lock from whoever holds it, living or dead",
		Long: "It says whose permits would come free, and asks, on a terminal, before it takes them; the reason goes into the log. A holder that\n" +
			"lives may still believe that it has the lock: what the lock protects must refuse lower tokens. Messages keep their claims; to take\n" +
			"those too, use requeue. The exit status is 4 where the log knows no such lock, 5 where nothing was done for want of a yes or a\n" +
			"reason, and 6 where no such permit is out, or they are not as they were said to be any more.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.lock, r.one = args[0], cmd.Flags().Changed("token")
			if err := checkAfter(r.after); err != nil {
				return err
			}
			if r.one && r.token < 1 {
				return usage("--token %d: want 1 or more", r.token)
			}
			if err := r.check("release-lock"); err != nil {
				return err
			}
			return a.releaseLock(cmd.Context(), r)
		},
	}
	wishFlags(cmd, &r.wish)
	cmd.Flags().Int64Var(&r.token, "token", 0, "only the permit with this token (default all of them)")
	afterFlag(cmd, &r.after)
	printing(a, cmd)
	cmd.ValidArgsFunction = once(a.lockNames())
	return cmd
}

func (a *app) releaseLock(ctx context.Context, r releasing) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := a.wholeLook(ctx, s, r.after)
	if err != nil {
		return err
	}
	k, out, err := r.permits(ctx, s, l)
	if err != nil {
		return err
	}
	if a.forPeople() {
		if err := a.showRelease(l, k, out); err != nil {
			return err
		}
	}
	if err := a.decideRelease(r, len(out)); err != nil {
		return errors.Join(a.printRelease(l, r, out, 0), err)
	}
	again, err := outNow(ctx, s, r)
	if err != nil {
		return err
	}
	if !slices.Equal(keysOf(out), again) {
		return &exitError{exitConflict, fmt.Errorf("nothing was done: the permits of lock %s are not those that were said any more", harmless(r.lock))}
	}
	client, err := a.client(s, "release-lock")
	if err != nil {
		return err
	}
	n, err := client.ReleaseLock(ctx, r.reason, r.lock, foundling.Token(r.token))
	if err != nil {
		return err
	}
	if err := a.printRelease(l, r, out, n); err != nil {
		return err
	}
	if n < len(out) {
		return &exitError{exitConflict, fmt.Errorf("%s came back meanwhile", count(len(out)-n, "permit"))}
	}
	return nil
}

// permits is the lock with those of its permits that are to come free.
func (r releasing) permits(ctx context.Context, s store.Store, l *look) (projections.Lock, []projections.Permit, error) {
	k, known := l.state.Locks.Lock(r.lock)
	if !known {
		history, err := newestOf(ctx, s, events.LockEntity(r.lock))
		if err != nil {
			return k, nil, err
		}
		if len(history) == 0 {
			return k, nil, notFound("no lock %s in this store", harmless(r.lock))
		}
	}
	if len(k.Out) == 0 {
		return k, nil, &exitError{exitConflict, fmt.Errorf("nothing to release: lock %s is free", harmless(r.lock))}
	}
	if !r.one {
		return k, k.Out, nil
	}
	for _, p := range k.Out {
		if int64(p.Token) == r.token {
			return k, []projections.Permit{p}, nil
		}
	}
	return k, nil, &exitError{exitConflict, fmt.Errorf("nothing to release: no permit of lock %s with token %d is out", harmless(r.lock), r.token)}
}

// showRelease says whose permits would come free.
func (a *app) showRelease(l *look, k projections.Lock, out []projections.Permit) error {
	waiting := 0
	for _, w := range k.Waiters {
		waiting += w.Blocked + w.Trying
	}
	_, err := fmt.Fprintf(a.stdout, "%swould come free: %d of %s; %s for the lock\n", l.holders(out).text(), len(out),
		count(len(k.Out), "permit"), waits(waiting))
	return err
}

// waits says how many messages wait.
func waits(n int) string {
	if n == 1 {
		return "1 message waits"
	}
	return fmt.Sprintf("%d messages wait", n)
}

func (a *app) decideRelease(r releasing, n int) error {
	what := fmt.Sprintf("release %s of lock %s", count(n, "permit"), harmless(r.lock))
	switch {
	case r.yes:
		return nil
	case r.ask != nil:
		return r.ask(what)
	}
	return a.confirm(what)
}

// outNow is the permits that are out and meant, by the rows of the store.
func outNow(ctx context.Context, s store.Store, r releasing) ([]store.PermitKey, error) {
	var list []store.PermitKey
	for p, err := range s.Permits(ctx, store.PermitFilter{Lock: r.lock}) {
		if err != nil {
			return nil, err
		}
		if !r.one || int64(p.Token) == r.token {
			list = append(list, p.PermitKey)
		}
	}
	return list, nil
}

func keysOf(list []projections.Permit) []store.PermitKey {
	keys := make([]store.PermitKey, len(list))
	for i, p := range list {
		keys[i] = store.PermitKey{Lock: p.Lock, Token: p.Token}
	}
	slices.SortFunc(keys, func(a, b store.PermitKey) int { return int(a.Token - b.Token) })
	return keys
}

// jsonReleased is what came of a release as a whole.
type jsonReleased struct {
	Reason   string `json:"reason"`
	Released int    `json:"released"`
}

// printRelease says what was done.
func (a *app) printRelease(l *look, r releasing, out []projections.Permit, n int) error {
	if a.forPeople() {
		if n == 0 {
			return nil
		}
		_, err := io.WriteString(a.stdout, fmt.Sprintf("released: %d\n", n))
		return err
	}
	d := document[jsonPermit]{Schema: "foundling.release_lock/v1", AsOf: atMark(l.mark()), Warnings: l.warnings(), Result: jsonReleased{r.reason, n}}
	for _, p := range out {
		d.Items = append(d.Items, l.jsonPermit(p))
	}
	return printJSON(a, d)
}
