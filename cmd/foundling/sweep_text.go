package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
)

// print says what came of the sweep, or would.
func (w *swept) print() error {
	if !w.forPeople() {
		return w.printJSON()
	}
	var b strings.Builder
	w.sum(&b)
	if len(w.dead) > 0 {
		b.WriteString("\n" + w.graves().text())
	}
	if t := w.estate().text(); t != "" {
		b.WriteString("\n" + t)
	}
	_, err := io.WriteString(w.stdout, b.String())
	return err
}

// sum is the answer in a line or two.
func (w *swept) sum(b *strings.Builder) {
	r := w.report
	gave, nothing := "gave back", "nothing to give back: nobody who is dead holds anything"
	if w.dry {
		gave, nothing = "would give back", "a sweep would find nothing to give back"
	}
	dead := count(len(r.Dead), "dead worker")
	switch {
	case r.Requeued+r.DeadLettered+r.LocksReleased > 0:
		fmt.Fprintf(b, "✔ %s %s and %s of %s", gave, count(r.Requeued+r.DeadLettered, "message"), count(r.LocksReleased, "lock"), dead)
		if r.DeadLettered > 0 {
			fmt.Fprintf(b, ", %d as dead letters", r.DeadLettered)
		}
		b.WriteString("\n")
	case r.Spared > 0:
		fmt.Fprintf(b, "✔ %s nothing yet\n", gave)
	case len(r.Dead) > 0:
		fmt.Fprintf(b, "✔ %s nothing: %s held nothing\n", gave, dead)
	case r.Refused == "" && !w.cut:
		fmt.Fprintf(b, "✔ %s\n", nothing)
	}
	if r.Spared > 0 {
		fmt.Fprintf(b, "  spared: what dead workers took less than %s ago: %d (%s)\n", findings.Span(w.grace), r.Spared,
			settingName("orphan-claim-grace"))
	}
	if w.dry && w.onSilence() {
		fmt.Fprintf(b, "  unproven: silence is the evidence; a sweep first beats for %s, until its own view is proven\n", findings.Span(w.after))
	}
	if r.Refused != "" {
		verb := "refused"
		if w.dry {
			verb = "would be refused"
		}
		fmt.Fprintf(b, "✖ %s: %s\n  saw   %s\n  next  %s\n", verb, r.Refused, harmless(r.Detail), w.wayOut())
	}
}

// onSilence reports whether anybody is held to be dead without proof.
func (w *swept) onSilence() bool {
	return slices.ContainsFunc(w.dead, func(d deceased) bool { return d.vital.dead != events.ReasonProcessGone })
}

// wayOut says what to do about a refusal.
func (w *swept) wayOut() string {
	switch events.Reason(w.report.Refused) {
	case events.ReasonLivenessUnproven:
		return "sweep again without --wait, which waits until it is proven, or leave it to a worker that has run for longer than " + findings.Span(w.after)
	case events.ReasonClockStepped:
		return "set the clock right and sweep again: it is trusted once the step is " + findings.Span(w.after) + " ago"
	}
	return "find out why heartbeats do not reach the store (foundling workers, foundling events --type sweep.refused); by hand, now: " +
		`foundling requeue ID --reason "why"`
}

// graves is who was held to be dead, by which evidence.
func (w *swept) graves() *table {
	t := newTable("WORKER", "PROCESS", "BY", ">MESSAGES", ">LOCKS")
	for _, d := range w.dead {
		locks := len(d.locks)
		for _, m := range d.messages {
			if m.lock != "" {
				locks++
			}
		}
		t.add(w.names.ID(d.id), d.process.text(), fmt.Sprintf("%s (%s)", strings.TrimPrefix(d.vital.text(), "dead: "), d.vital.dead),
			number(len(d.messages)), number(locks))
	}
	return t
}

// estate is what the dead held, message by message.
func (w *swept) estate() *table {
	header := []string{"MESSAGE", "TOPIC", ">ATTEMPT", "FROM", "LOCK"}
	if !w.dry {
		header = append(header, "NOW")
	}
	t := newTable(header...)
	for _, d := range w.dead {
		for _, m := range d.messages {
			lock := m.lock
			if lock == "" {
				lock = unknown
			}
			cells := []string{w.names.ID(m.id), harmless(m.topic), fmt.Sprintf("%d of %d", m.attempt, m.most), w.names.ID(d.id), harmless(lock)}
			if !w.dry {
				cells = append(cells, m.becomes.String())
			}
			if len(t.rows) < mostShown {
				t.add(cells...)
			}
		}
		for _, lock := range d.locks {
			if len(t.rows) < mostShown {
				t.add(unknown, unknown, unknown, w.names.ID(d.id), harmless(lock))
			}
		}
	}
	return t
}

// jsonSwept is what came of a sweep as a whole.
type jsonSwept struct {
	DryRun        bool    `json:"dry_run"`
	Sweep         *string `json:"sweep"`
	Worker        *string `json:"worker"`  // the incarnation that swept
	Outcome       string  `json:"outcome"` // acted, nothing, refused or interrupted
	Refused       *string `json:"refused"` // the guard
	Detail        *string `json:"detail"`  // what it saw
	Hint          *string `json:"hint"`
	Requeued      int     `json:"requeued"`
	DeadLettered  int     `json:"dead_lettered"`
	LocksReleased int     `json:"locks_released"`
	Spared        int     `json:"spared"`
	Live          int     `json:"live"`
	Unproven      bool    `json:"unproven"` // silence is evidence here: a sweep first waits until its own view is proven

	ReclaimAfter *float64 `json:"orphan_reclaim_after_seconds"`
	ClaimGrace   *float64 `json:"orphan_claim_grace_seconds"`
	MaxAttempts  int      `json:"orphan_max_attempts"`
	Count        string   `json:"orphan_count"`
}

// jsonDead is a worker that was held to be dead as JSON has it.
type jsonDead struct {
	jsonHolder
	Messages []jsonGivenBack `json:"messages"`
	Locks    []string        `json:"locks"` // without a message
}

// jsonGivenBack is a message that a dead worker held as JSON has it.
type jsonGivenBack struct {
	Message     string  `json:"message"`
	Topic       string  `json:"topic"`
	Attempt     int     `json:"attempt"`
	MaxAttempts int     `json:"max_attempts"`
	State       *string `json:"state"` // what became of it; null in a dry run
	Lock        *string `json:"lock"`
}

func (w *swept) printJSON() error {
	r := w.report
	result := jsonSwept{
		DryRun: w.dry, Sweep: idOrNull(r.ID), Worker: idOrNull(r.Worker), Outcome: "nothing", Refused: orNull(r.Refused), Detail: orNull(r.Detail),
		Requeued: r.Requeued, DeadLettered: r.DeadLettered, LocksReleased: r.LocksReleased, Spared: r.Spared, Live: r.Live,
		Unproven:     w.onSilence(),
		ReclaimAfter: seconds(w.after), ClaimGrace: seconds(w.grace), MaxAttempts: w.limit(), Count: w.orphanCount,
	}
	switch {
	case w.cut:
		result.Outcome = "interrupted"
	case r.Refused != "":
		result.Outcome, result.Hint = "refused", orNull(w.wayOut())
	case len(r.Dead) > 0:
		result.Outcome = "acted"
	}
	d := document[jsonDead]{Schema: "foundling.sweep/v1", AsOf: atTime(w.now), Truncated: w.cut, Result: result}
	for _, x := range w.dead {
		j := jsonDead{
			jsonHolder: jsonHolder{x.id.String(), orNull(x.process.Host), pidOrNull(x.process.PID), x.vital.json()},
			Messages:   []jsonGivenBack{}, Locks: append([]string{}, x.locks...),
		}
		for _, m := range x.messages {
			g := jsonGivenBack{Message: m.id.String(), Topic: m.topic, Attempt: m.attempt, MaxAttempts: m.most, Lock: orNull(m.lock)}
			if m.becomes != events.Absent {
				g.State = orNull(m.becomes.String())
			}
			j.Messages = append(j.Messages, g)
		}
		d.Items = append(d.Items, j)
	}
	return printJSON(w.app, d)
}
