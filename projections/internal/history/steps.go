package history

import (
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
)

var keyNames = []string{"a", "b"}

func (h *History) enqueue() error {
	m := fsm.EnqueueMessage{Limits: events.Limits{MaxAttempts: 1 + h.draw(3)}, Priority: events.Priorities()[h.draw(3)]}
	if h.draw(4) == 0 {
		m.Delay = time.Duration(h.draw(10)) * time.Second
	}
	if h.draw(4) == 0 {
		m.Key = keyNames[h.draw(len(keyNames))]
	}
	if h.draw(2) == 0 {
		m.Lock, m.OnLocked = h.lock(), events.LockPolicy(h.draw(2))
	}
	_, err := h.Enqueue(h.topic(), 1+h.draw(3), m)
	return err
}

func (h *History) claim() error {
	_, err := h.Claim(h.worker(), h.topic(), 1+h.draw(4))
	return err
}

func (h *History) settle() error {
	rows, err := h.messages(events.Running)
	if err != nil || len(rows) == 0 {
		return err
	}
	row := rows[h.draw(len(rows))]
	m, err := calls.Message(row)
	if err != nil {
		return err
	}
	commands := []fsm.MessageCommand{
		fsm.CompleteMessage{Token: m.Token},
		fsm.CompleteMessage{Token: m.Token},
		fsm.FailMessage{Token: m.Token, Error: "exit status 1", Jitter: h.draw(201) - 100},
		fsm.ReleaseMessage{Token: m.Token, Reason: events.ReasonReleased},
		fsm.ReleaseMessage{Token: m.Token, Reason: events.ReasonSnoozed, Delay: time.Second},
		fsm.DeadLetterMessage{Token: m.Token, Error: "no such user"},
		fsm.CancelMessage{Token: m.Token},
	}
	return h.Settle(row.Worker, fsm.Settlement{ID: m.ID, Command: commands[h.draw(len(commands))], Permit: m.Permit()})
}

// message is one that was ever made.
func (h *History) message() (events.ID, bool) {
	if len(h.known) == 0 {
		return events.ID{}, false
	}
	return h.known[h.draw(len(h.known))], true
}

// late is a result of a claim that is over, or never was.
func (h *History) late() error {
	id, ok := h.message()
	if !ok {
		return nil
	}
	return h.Settle(h.worker(), fsm.Settlement{ID: id, Command: fsm.CompleteMessage{Token: 1}})
}

func (h *History) operate() error {
	id, ok := h.message()
	if !ok {
		return nil
	}
	commands := []fsm.MessageCommand{
		fsm.CancelMessage{By: "ann"}, fsm.TakeBackMessage{By: "ann"}, fsm.RedriveMessage{By: "ann"}, fsm.RedriveMessage{By: "ann"},
	}
	operate := fsm.Operate{
		IDs: []events.ID{id}, Command: commands[h.draw(len(commands))], Force: fsm.Force(h.draw(2)), After: thresholds.After,
	}
	if h.draw(4) == 0 {
		operate.Gone = []events.ID{h.worker()}
	}
	return h.Operate(operate)
}

func (h *History) limit() error {
	return h.Topic(h.topic(), fsm.ConfigureTopic{Limit: max(0, h.draw(6)-2), By: "ann"})
}

func (h *History) count() error {
	_, err := h.Do(calls.CountClaims(h.origin(), fsm.CountClaims{Topic: h.topic(), Page: 1 + h.draw(3)}))
	return err
}

func (h *History) pause() error {
	commands := []fsm.TopicCommand{fsm.PauseTopic{By: "ann", Detail: "INC-142"}, fsm.ResumeTopic{By: "ann"}, fsm.ResumeTopic{By: "ann"}}
	return h.Topic(h.topic(), commands[h.draw(len(commands))])
}
