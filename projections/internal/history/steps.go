package history

import (
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
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
	_, err := h.Enqueue(h.topic(), 1+h.draw(3), m)
	return err
}

// worker is one of the fleet, which begins with nobody.
func (h *History) worker() events.ID {
	i := h.draw(workers)
	if h.fleet[i] == (events.ID{}) {
		h.fleet[i] = h.ID()
	}
	return h.fleet[i]
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
	return h.Settle(row.Worker, row.Entity.ID, commands[h.draw(len(commands))])
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
	return h.Settle(h.worker(), id, fsm.CompleteMessage{Token: 1})
}

func (h *History) operate() error {
	id, ok := h.message()
	if !ok {
		return nil
	}
	commands := []fsm.MessageCommand{
		fsm.CancelMessage{By: "ann"}, fsm.TakeBackMessage{By: "ann"}, fsm.RedriveMessage{By: "ann"}, fsm.RedriveMessage{By: "ann"},
	}
	// Every key is held, not only the message's, so that no row has to be read for it.
	var keys []store.Key
	for _, topic := range Topics {
		for _, key := range keyNames {
			keys = append(keys, store.Key{Topic: topic, Name: key})
		}
	}
	operate := fsm.Operate{IDs: []events.ID{id}, Command: commands[h.draw(len(commands))]}
	call, _ := calls.Operate(h.origin(), operate, keys)
	_, err := h.Do(call)
	return err
}

func (h *History) limit() error {
	return h.Topic(h.topic(), fsm.ConfigureTopic{Limit: h.draw(4), By: "ann"})
}

func (h *History) count() error {
	_, err := h.Do(calls.CountClaims(h.origin(), fsm.CountClaims{Topic: h.topic(), Page: 1 + h.draw(3)}))
	return err
}

func (h *History) pause() error {
	commands := []fsm.TopicCommand{fsm.PauseTopic{By: "ann", Detail: "INC-142"}, fsm.ResumeTopic{By: "ann"}, fsm.ResumeTopic{By: "ann"}}
	return h.Topic(h.topic(), commands[h.draw(len(commands))])
}

func (h *History) work() error {
	id := h.worker()
	commands := []fsm.WorkerCommand{
		fsm.StartWorker{Started: events.WorkerStarted{Host: "host-a", PID: 4711, Topics: Topics, HeartbeatInterval: time.Second}},
		fsm.StartWorker{Started: events.WorkerStarted{Host: "host-b", PID: 4712, Topics: Topics, Proof: true}},
		fsm.GapWorker{FromAt: h.Now().Add(-time.Minute), ToAt: h.Now()},
		fsm.ReturnWorker{},
		fsm.StopWorker{},
	}
	return h.Worker(id, commands[h.draw(len(commands))])
}

// reclaim gives back what a worker holds, and puts another in its place.
func (h *History) reclaim() error {
	i := h.draw(workers)
	if h.fleet[i] == (events.ID{}) {
		return nil
	}
	evidence := events.Evidence{Reason: events.ReasonProcessGone, Claimer: h.fleet[i], Limit: 2}
	_, err := h.Do(calls.Reclaim(h.origin(), fsm.Reclaim{Evidence: evidence}, 1+h.draw(4)))
	if h.draw(2) == 0 {
		h.fleet[i] = events.ID{}
	}
	return err
}
