package main

import (
	"fmt"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
)

// table is what would become of messages, a row each. Who holds them is a column where anybody does.
func (f *foresight) table(list []prospect) *table {
	held := false
	for _, p := range list {
		held = held || p.holder != nil
	}
	header := []string{"MESSAGE", "TOPIC", "IS", ">ATTEMPT"}
	if held {
		header = append(header, "HELD BY", "LIVES")
	}
	t := newTable(append(header, "WOULD BE")...)
	for _, p := range list {
		m := p.message
		cells := []string{f.names.ID(m.ID), harmless(m.Topic), stateWord(m.State), fmt.Sprintf("%d of %d", m.Spent(), fsm.MaxAttempts(m.Limits))}
		if held {
			cells = append(cells, f.holder(p), lives(p))
		}
		t.add(append(cells, p.wouldBe(f.otherwise))...)
	}
	return t
}

// holder names who holds the message, with the process it is.
func (f *foresight) holder(p prospect) string {
	if p.holder == nil {
		return unknown
	}
	text := f.names.ID(p.message.Worker)
	if proc, ok := f.procs[p.message.Worker]; ok {
		text += " (" + proc.text() + ")"
	}
	return text
}

func lives(p prospect) string {
	if p.holder == nil {
		return unknown
	}
	return p.holder.text()
}

// wouldBe says what would become of a message.
func (p prospect) wouldBe(otherwise string) string {
	if p.refusal != nil {
		return "refused: " + p.why(otherwise)
	}
	text, max := p.becomes.String(), fsm.MaxAttempts(p.message.Limits)
	switch {
	case p.becomes == events.Queued && p.message.State == events.DeadLettered:
		text += ", with " + count(max, "attempt")
	case p.becomes == events.Queued:
		text += fmt.Sprintf(", attempt %d of %d next", p.message.Spent()+1, max)
	}
	switch {
	case p.lock == "":
	case p.freed:
		text += fmt.Sprintf("; lock %s comes free", harmless(p.lock))
	default:
		text += fmt.Sprintf("; lock %s stays taken until its handler has ended", harmless(p.lock))
	}
	if p.holder != nil && p.holder.dead == "" {
		text += "; its handler is told to end, and its result is refused"
	}
	return text
}

// why says why a message is left alone.
func (p prospect) why(otherwise string) string {
	r := p.refusal
	if p.late != nil {
		r = p.late
	}
	switch r.Reason {
	case events.ReasonAlive:
		return "its worker lives; --force takes it all the same"
	case events.ReasonWrongState:
		return fmt.Sprintf("it is %s%s", stateWord(r.State), otherwise)
	case events.ReasonKeyTaken:
		return "its key was taken meanwhile (key_taken)"
	}
	return string(r.Reason)
}

// movedError says that a message was not as the plan had it any more.
func (f *foresight) movedError(p prospect) error {
	if p.late != nil {
		return fmt.Errorf("%s was left alone: %s", f.names.ID(p.message.ID), p.late.Error())
	}
	return fmt.Errorf("%s was left alone: it moved since this was said of it", f.names.ID(p.message.ID))
}

// jsonProspect is what would become of a message, and what did, as JSON has it.
type jsonProspect struct {
	Message     string      `json:"message"`
	Topic       *string     `json:"topic"`
	State       string      `json:"state"`
	Attempt     int         `json:"attempt"`
	MaxAttempts int         `json:"max_attempts"`
	Worker      *jsonHolder `json:"worker"` // null where nobody holds it
	WouldBe     *string     `json:"would_be"`
	Lock        *string     `json:"lock"`
	LockFreed   *bool       `json:"lock_freed"` // null where it holds none
	Refused     *string     `json:"refused"`    // why it is left alone
	Outcome     actOutcome  `json:"outcome"`
}

// jsonActed is what came of an action as a whole.
type jsonActed struct {
	Reason  string `json:"reason"`
	Done    int    `json:"done"`
	Refused int    `json:"refused"`
	Moved   int    `json:"moved"`
}

// printJSON prints the whole of an action where it was asked for as JSON.
func (d *acted) printJSON(now time.Time) error {
	if d.forPeople() {
		return nil
	}
	n := d.plan.outcomes()
	doc := document[jsonProspect]{
		Schema: "foundling." + d.name + "/v1", AsOf: atTime(now),
		Result: jsonActed{Reason: d.reason, Done: n[doneOutcome], Refused: n[refusedOutcome], Moved: n[movedOutcome]},
	}
	for _, p := range d.plan.list {
		doc.Items = append(doc.Items, d.plan.json(p))
	}
	return printJSON(d.app, doc)
}

func (f *foresight) json(p prospect) jsonProspect {
	m := p.message
	j := jsonProspect{
		Message: m.ID.String(), Topic: orNull(m.Topic), State: m.State.String(), Attempt: m.Spent(), MaxAttempts: fsm.MaxAttempts(m.Limits),
		Lock: orNull(p.lock), Outcome: p.outcome,
	}
	if p.refusal == nil {
		j.WouldBe = orNull(p.becomes.String())
	}
	if p.lock != "" {
		j.LockFreed = &p.freed
	}
	switch {
	case p.late != nil:
		j.Refused = orNull(string(p.late.Reason))
	case p.refusal != nil:
		j.Refused = orNull(string(p.refusal.Reason))
	}
	if p.holder != nil {
		proc := f.procs[m.Worker]
		j.Worker = &jsonHolder{ID: m.Worker.String(), Host: orNull(proc.Host), PID: pidOrNull(proc.PID), jsonVital: p.holder.json()}
	}
	return j
}
