package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

// lockHistory is how many of the newest events of a lock are shown.
const lockHistory = 20

func newLocks(a *app) *cobra.Command {
	var after time.Duration
	cmd := &cobra.Command{
		Use:   "locks [NAME]",
		Short: "Say who holds which lock and who waits; of one, what became of it lately",
		Long: "Every lock that is held, waited for or configured, with its permits: who holds each, and whether that worker lives, by which\n" +
			"evidence. Of one lock, also of a free one, the newest events that the log has.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkAfter(after); err != nil {
				return err
			}
			if len(args) > 0 {
				return a.lock(cmd.Context(), after, args[0])
			}
			return a.listing(cmd.Context(), after, a.locks)
		},
	}
	afterFlag(cmd, &after)
	printingList(a, cmd)
	cmd.ValidArgsFunction = once(a.lockNames())
	return cmd
}

// jsonLock is a lock as JSON has it.
type jsonLock struct {
	Lock    string          `json:"lock"`
	Permits int             `json:"permits"`
	Held    int             `json:"held"`
	Holders []jsonPermit    `json:"holders"`
	Waiters []jsonWaiters   `json:"waiters"`
	History []jsonLockEvent `json:"history,omitzero"` // where one lock was asked for
}

// jsonPermit is a permit that is out as JSON has it.
type jsonPermit struct {
	Lock      string     `json:"lock"`
	Token     string     `json:"token"`
	HeldFor   *float64   `json:"held_seconds"`
	Message   *string    `json:"message"` // null where it is held without one
	ExpiresAt *time.Time `json:"expires_at"`
	// ClaimEnded is how the claim ended whose handler still has the permit, such as message.cancelled; null while it is open.
	ClaimEnded *string    `json:"claim_ended"`
	Worker     jsonHolder `json:"worker"`
}

// jsonWaiters is who waits for a lock on one topic as JSON has it.
type jsonWaiters struct {
	Topic   string   `json:"topic"`
	Blocked int      `json:"blocked"`
	Trying  int      `json:"trying"`
	Longest string   `json:"longest_waiting"`
	Waited  *float64 `json:"longest_waited_seconds"`
}

// jsonLockEvent is an event as JSON has it.
type jsonLockEvent struct {
	Position string     `json:"position"`
	Time     *time.Time `json:"time"`
	Type     string     `json:"type"`
	Text     string     `json:"text"` // its fields as foundling events prints them
}

func (l *look) jsonPermit(p projections.Permit) jsonPermit {
	j := jsonPermit{
		Lock: p.Lock, Token: whole(p.Token), HeldFor: l.ageOrNull(p.At), Message: idOrNull(p.Message), ExpiresAt: instant(p.ExpiresAt),
		Worker: l.jsonHolder(p.Worker),
	}
	if p.Ended.Position > 0 {
		j.ClaimEnded = orNull(p.Ended.Type.String())
	}
	return j
}

func (l *look) jsonLock(k projections.Lock) jsonLock {
	j := jsonLock{Lock: k.Name, Permits: k.Permits, Held: len(k.Out), Holders: []jsonPermit{}, Waiters: []jsonWaiters{}}
	for _, p := range k.Out {
		j.Holders = append(j.Holders, l.jsonPermit(p))
	}
	for _, w := range k.Waiters {
		j.Waiters = append(j.Waiters, jsonWaiters{w.Topic, w.Blocked, w.Trying, w.Longest.String(), l.ageOrNull(w.Since.At)})
	}
	return j
}

func (a *app) locks(l *look) error {
	all, more := few(a, l.state.Locks.All())
	if !a.forPeople() {
		d := document[jsonLock]{Schema: "foundling.locks/v1", AsOf: atMark(l.mark()), Truncated: more || l.cut, Warnings: l.warnings()}
		for _, k := range all {
			d.Items = append(d.Items, l.jsonLock(k))
		}
		return printJSON(a, d)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.stdout, "no lock is held, waited for or configured")
		return err
	}
	parts := []string{l.doors(all).text()}
	var out []projections.Permit
	for _, k := range all {
		out = append(out, k.Out...)
	}
	if len(out) > 0 {
		parts = append(parts, l.holders(out).text())
	}
	_, err := io.WriteString(a.stdout, strings.Join(parts, "\n")+andMore(more))
	return err
}

// doors is how many permits of locks are out, and who waits.
func (l *look) doors(list []projections.Lock) *table {
	t := newTable("LOCK", ">PERMITS", ">HELD", ">WAITING", ">LONGEST", "WAIT ON")
	for _, k := range list {
		n, longest := 0, projections.Mark{}
		var topics []string
		for _, w := range k.Waiters {
			n += w.Blocked + w.Trying
			topics = append(topics, fmt.Sprintf("%s (%d)", w.Topic, w.Blocked+w.Trying))
			if longest == (projections.Mark{}) || w.Since.Position < longest.Position {
				longest = w.Since
			}
		}
		t.add(harmless(k.Name), number(k.Permits), number(len(k.Out)), number(n), l.span(longest.At), harmless(strings.Join(topics, " ")))
	}
	return t
}

// holders is who holds permits.
func (l *look) holders(list []projections.Permit) *table {
	t := newTable("LOCK", ">TOKEN", ">HELD FOR", "MESSAGE", "WORKER", "LIVES", "")
	for _, p := range list {
		note := ""
		switch {
		case p.Ended.Position > 0:
			note = fmt.Sprintf("%s %s ago, its handler has not ended", p.Ended.Type, l.span(p.Ended.At))
		case !p.ExpiresAt.IsZero():
			note = "until " + absolute(p.ExpiresAt)
		}
		t.add(harmless(p.Lock), fmt.Sprint(p.Token), l.cell(p.At), l.messageCell(p.Message), l.holder(p.Worker), l.of(p.Worker).text(), note)
	}
	return t
}

// lock is one lock with what became of it lately.
func (a *app) lock(ctx context.Context, after time.Duration, name string) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := a.look(ctx, s, after)
	if err != nil {
		return err
	}
	k, known := l.state.Locks.Lock(name)
	history, err := newestOf(ctx, s, events.LockEntity(name))
	if err != nil {
		return err
	}
	if !known && len(history) == 0 {
		return notFound("no lock %s in this store", harmless(name))
	}
	if !known {
		k = projections.Lock{Name: name, Permits: 1}
	}
	if err := a.printOneLock(l, k, history); err != nil {
		return err
	}
	return a.footer(l)
}

func (a *app) printOneLock(l *look, k projections.Lock, history []events.Recorded) error {
	if !a.forPeople() {
		j := l.jsonLock(k)
		j.History = []jsonLockEvent{}
		for _, r := range history {
			text := strings.TrimSpace((&events.Names{}).Fields(r.Event))
			j.History = append(j.History, jsonLockEvent{whole(r.Position), instant(r.At()), r.Event.Type().String(), text})
		}
		return printJSON(a, document[jsonLock]{Schema: "foundling.locks/v1", AsOf: atMark(l.mark()), Truncated: l.cut, Warnings: l.warnings(), Items: []jsonLock{j}})
	}
	return a.printLock(l, k, history)
}

func (a *app) printLock(l *look, k projections.Lock, history []events.Recorded) error {
	head := l.doors([]projections.Lock{k}).text()
	if k.Set.By != "" {
		head += fmt.Sprintf("permits set %s ago by %s%s\n", findings.Span(l.age(k.Set.At)), harmless(k.Set.By), because(k.Set.Detail))
	}
	parts := []string{head}
	if len(k.Out) > 0 {
		parts = append(parts, l.holders(k.Out).text())
	}
	t := newTable(">POSITION", ">AGO", "EVENT", "")
	for _, r := range history {
		t.add(fmt.Sprint(r.Position), l.span(r.At()), r.Event.Type().String(), strings.TrimSpace(l.facts.Names.Fields(r.Event)))
	}
	if len(history) > 0 {
		parts = append(parts, t.text())
	}
	_, err := io.WriteString(a.stdout, strings.Join(parts, "\n"))
	return err
}

// newestOf is the newest events of an entity, the oldest first.
func newestOf(ctx context.Context, s store.Store, entity events.Entity) ([]events.Recorded, error) {
	var list []events.Recorded
	for r, err := range logOf(ctx, s, store.Filter{Entity: entity}) {
		if err != nil {
			return nil, err
		}
		if len(list) == lockHistory {
			list = append(list[:0], list[1:]...)
		}
		list = append(list, r)
	}
	return list, nil
}
