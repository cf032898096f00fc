package main

import (
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

// jsonStep is a step of a message's life as JSON has it. What is null does not apply to it.
type jsonStep struct {
	Position string     `json:"position"`
	Time     *time.Time `json:"time"`
	Type     string     `json:"type"`
	Version  int        `json:"version"` // of the message; 0 where the event moves nothing
	From     *string    `json:"from"`    // null is before everything
	To       string     `json:"to"`
	Attempt  *int       `json:"attempt"` // the claim that it begins, continues or ends
	Worker   *jsonPeer  `json:"worker"`  // who holds or held that claim
	Reason   *string    `json:"reason"`
	Error    *string    `json:"error"` // the handler's
	By       *string    `json:"by"`    // who asked for it
	Detail   *string    `json:"detail"`
	DueAt    *time.Time `json:"due_at"`
	Blocked  *float64   `json:"blocked_seconds"`
	Waited   *float64   `json:"waited_seconds"`
	Ran      *float64   `json:"ran_seconds"`
}

// jsonPeer is a worker as a message's life has it.
type jsonPeer struct {
	ID   string  `json:"id"`
	Host *string `json:"host"`
	PID  *int    `json:"pid"`
}

// jsonLife is a message's life in one look as JSON has it.
type jsonLife struct {
	jsonMessage
	Waited  *float64 `json:"waited_seconds"` // in all, from when it could be claimed until it was
	Blocked *float64 `json:"blocked_seconds"`
	Ran     *float64 `json:"ran_seconds"`
}

func (t *tracing) printJSON() error {
	sum := t.life.Summary()
	life := jsonLife{jsonMessage: t.jsonMessage(t.info)}
	if !headless(t.info) {
		life.Waited, life.Blocked, life.Ran = seconds(sum.Waited), seconds(sum.Blocked), seconds(sum.Ran)
	}
	d := document[jsonStep]{Schema: "foundling.trace/v1", AsOf: atMark(t.life.AsOf()), Result: life}
	for _, step := range t.life.Entries() {
		d.Items = append(d.Items, t.jsonStep(step))
	}
	return printJSON(t.app, d)
}

func (t *tracing) jsonStep(step projections.Entry) jsonStep {
	j := jsonStep{
		Position: whole(step.Position), Time: instant(step.At()), Type: step.Event.Type().String(), Version: step.Version,
		From: stateOrNull(step.From), To: step.To.String(), Reason: orNull(string(step.Reason)), Error: orNull(step.Error), By: orNull(step.By),
		Detail: orNull(step.Detail), DueAt: instant(step.DueAt), Blocked: spanOrNull(step.Blocked), Waited: spanOrNull(step.Waited),
		Ran: spanOrNull(step.Ran),
	}
	if step.Attempt > 0 {
		j.Attempt = &step.Attempt
	}
	if step.Worker != (events.ID{}) {
		p := t.workers[step.Worker]
		j.Worker = &jsonPeer{step.Worker.String(), orNull(p.Host), pidOrNull(p.PID)}
	}
	return j
}

// spanOrNull is a length of time as JSON has it; null where it is none.
func spanOrNull(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	return seconds(d)
}
