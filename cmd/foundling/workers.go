package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/spf13/cobra"
)

func newWorkers(a *app) *cobra.Command {
	var after time.Duration
	cmd := &cobra.Command{
		Use:   "workers [ID]",
		Short: "Say who works, and whether each lives, by which evidence; of one, what it holds",
		Long: "Every incarnation of a working process that has not stopped: its state by the log, whether it lives by its heartbeats or by\n" +
			"proof, and how much it holds. ID is a worker's id or the end of one.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkAfter(after); err != nil {
				return err
			}
			return a.listing(cmd.Context(), after, func(l *look) error {
				if len(args) > 0 {
					return a.worker(l, args[0])
				}
				return a.workers(l)
			})
		},
	}
	afterFlag(cmd, &after)
	printingList(a, cmd)
	cmd.ValidArgsFunction = once(a.workerTails())
	return cmd
}

// jsonWorker is a worker as JSON has it.
type jsonWorker struct {
	jsonHolder
	State        string       `json:"state"` // by the log
	Program      *string      `json:"program"`
	Topics       []string     `json:"topics"`
	Concurrency  int          `json:"concurrency"`
	Interval     *float64     `json:"heartbeat_interval_seconds"`
	FenceAfter   *float64     `json:"fence_after_seconds"` // null never does
	Provable     bool         `json:"provable"`            // its end can be proven
	StartedAge   *float64     `json:"started_age_seconds"`
	LostAge      *float64     `json:"lost_age_seconds"` // null where nobody held it to be lost
	LostEvidence *string      `json:"lost_evidence"`
	Returned     int          `json:"returned"`
	Gaps         int          `json:"gaps"`
	Claims       int          `json:"claims"`
	Permits      int          `json:"permits"`
	ClaimsTaken  int          `json:"claims_taken"` // given back since it was held to be lost
	PermitsTaken int          `json:"permits_taken"`
	HeldClaims   []jsonHeld   `json:"held_claims,omitzero"` // where one worker was asked for
	HeldPermits  []jsonPermit `json:"held_permits,omitzero"`
}

// jsonHeld is a claim of a worker as JSON has it.
type jsonHeld struct {
	Message string   `json:"message"`
	Age     *float64 `json:"age_seconds"`
	Attempt int      `json:"attempt"`
	Lock    *string  `json:"lock"`
}

func (l *look) jsonWorker(w projections.Worker) jsonWorker {
	j := jsonWorker{
		jsonHolder: l.jsonHolder(w.ID), State: w.State.String(), Program: orNull(w.Program), Topics: w.Topics, Concurrency: w.Concurrency,
		Provable: w.Proof, StartedAge: l.ageOrNull(w.Started.At), LostAge: l.ageOrNull(w.Lost.At),
		LostEvidence: orNull(string(w.Evidence.Reason)), Returned: w.Returned, Gaps: w.Gaps, Claims: len(w.Claims), Permits: len(w.Permits),
		ClaimsTaken: w.Taken.Claims, PermitsTaken: w.Taken.Permits,
	}
	if w.HeartbeatInterval > 0 {
		j.Interval = seconds(w.HeartbeatInterval)
	}
	if w.FenceAfter > 0 {
		j.FenceAfter = seconds(w.FenceAfter)
	}
	if j.Topics == nil {
		j.Topics = []string{}
	}
	return j
}

func (a *app) workers(l *look) error {
	all, more := few(a, l.state.Workers.All())
	if !a.forPeople() {
		d := document[jsonWorker]{Schema: "foundling.workers/v1", AsOf: atMark(l.mark()), Truncated: more || l.cut, Warnings: l.warnings()}
		for _, w := range all {
			d.Items = append(d.Items, l.jsonWorker(w))
		}
		return printJSON(a, d)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.stdout, "nobody works")
		return err
	}
	_, err := io.WriteString(a.stdout, l.fleet(all).text()+andMore(more))
	return err
}

// fleet is who works, and how much they hold.
func (l *look) fleet(list []projections.Worker) *table {
	t := newTable("WORKER", "PROCESS", "STATE", "LIVES", ">INTERVAL", ">FENCE", ">CLAIMS", ">PERMITS", ">RETURNED", "TOPICS")
	for _, w := range list {
		t.add(l.facts.Names.ID(w.ID), process{w.Host, w.PID}.text(), w.State.String(), l.of(w.ID).text(), spanCell(w.HeartbeatInterval),
			spanCell(w.FenceAfter), number(len(w.Claims)), number(len(w.Permits)), number(w.Returned), harmless(strings.Join(w.Topics, " ")))
	}
	return t
}

func spanCell(d time.Duration) string {
	if d <= 0 {
		return unknown
	}
	return findings.Span(d)
}

// worker is one worker with what it holds.
func (a *app) worker(l *look, word string) error {
	id, err := l.resolveWorker(word)
	if err != nil {
		return err
	}
	w := l.worker(id)
	if !a.forPeople() {
		j := l.jsonWorker(w)
		j.HeldClaims, j.HeldPermits = []jsonHeld{}, []jsonPermit{}
		for _, c := range w.Claims {
			lock, _ := l.state.Locks.Of(c.Message)
			j.HeldClaims = append(j.HeldClaims, jsonHeld{c.Message.String(), l.ageOrNull(c.At), c.Attempt, orNull(lock)})
		}
		for _, p := range w.Permits {
			j.HeldPermits = append(j.HeldPermits, l.jsonPermit(p))
		}
		return printJSON(a, document[jsonWorker]{Schema: "foundling.workers/v1", AsOf: atMark(l.mark()), Truncated: l.cut, Warnings: l.warnings(), Items: []jsonWorker{j}})
	}
	parts := []string{l.fleet([]projections.Worker{w}).text() + l.biography(w)}
	if held := l.held(w).text(); held != "" {
		parts = append(parts, held)
	}
	if out := l.permits(w.Permits).text(); out != "" {
		parts = append(parts, out)
	}
	_, err = io.WriteString(a.stdout, strings.Join(parts, "\n"))
	return err
}

// resolveWorker finds the one worker that has not stopped whose id ends so.
func (l *look) resolveWorker(word string) (events.ID, error) {
	t, err := parseTail("worker", word)
	if err != nil {
		return events.ID{}, err
	}
	found := candidates{what: "worker"}
	for _, id := range l.workerIDs() {
		if strings.HasSuffix(tailOf(id, 2*len(id)), string(t)) {
			found.add(id)
		}
	}
	if found.count == 0 {
		return events.ID{}, notFound("no worker that has not stopped ends in %s", t)
	}
	return found.only(t)
}

// biography is what became of a worker so far.
func (l *look) biography(w projections.Worker) string {
	var b strings.Builder
	fmt.Fprintf(&b, "started %s ago, %s at once, made %s, %d completed\n", l.span(w.Started.At), count(w.Concurrency, "handler"),
		count(w.Claimed, "claim"), w.Completed)
	if w.Lost.Position > 0 {
		fmt.Fprintf(&b, "held to be lost %s ago (%s): %s and %s were taken from it\n", l.span(w.Lost.At), w.Evidence.Reason,
			count(w.Taken.Claims, "claim"), count(w.Taken.Permits, "permit"))
	}
	if w.Returned > 0 {
		fmt.Fprintf(&b, "was held to be lost and was heard of again: %s\n", count(w.Returned, "time"))
	}
	if w.Gaps > 0 {
		fmt.Fprintf(&b, "%s in its heartbeats, the last of %s, %s ago\n", count(w.Gaps, "gap"),
			findings.Span(w.Gap.ToAt.Sub(w.Gap.FromAt)), l.span(w.Gap.ToAt))
	}
	return b.String()
}

// held is the claims that a worker has open.
func (l *look) held(w projections.Worker) *table {
	t := newTable("MESSAGE", ">CLAIM AGE", ">ATTEMPT", "LOCK")
	for _, c := range w.Claims {
		lock, ok := l.state.Locks.Of(c.Message)
		if !ok {
			lock = unknown
		}
		t.add(l.facts.Names.ID(c.Message), l.cell(c.At), number(c.Attempt), harmless(lock))
	}
	return t
}

// permits is the permits that a worker holds.
func (l *look) permits(list []projections.Permit) *table {
	t := newTable("LOCK", ">TOKEN", ">HELD FOR", "MESSAGE")
	for _, p := range list {
		t.add(harmless(p.Lock), fmt.Sprint(p.Token), l.cell(p.At), l.messageCell(p.Message))
	}
	return t
}

func (l *look) messageCell(id events.ID) string {
	if id == (events.ID{}) {
		return unknown
	}
	return l.facts.Names.ID(id)
}
