package findings

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
)

// alarms is a finding for each worker that was held to be lost and beat again.
func (l *look) alarms() []Finding {
	byWorker := map[events.ID][]projections.FalseAlarm{}
	for _, a := range l.Workers.FalseAlarms() {
		if l.age(a.At) <= AlarmsFor {
			byWorker[a.Worker] = append(byWorker[a.Worker], a)
		}
	}
	var list []Finding
	for _, alarms := range byWorker {
		list = append(list, l.alarm(alarms))
	}
	return list
}

func (l *look) alarm(alarms []projections.FalseAlarm) Finding {
	last := alarms[len(alarms)-1]
	subject := events.WorkerEntity(last.Worker)
	found := Finding{
		Code: WorkerReturned, Severity: Warning, Subject: subject, Since: alarms[0].At,
		Text: fmt.Sprintf("%s was held to be lost and beat again %s later: a false alarm", l.Names.Entity(subject), Span(last.At.Sub(last.LostAt))),
		Next: []string{l.command("workers " + l.Names.ID(last.Worker))},
	}
	for _, a := range alarms[max(0, len(alarms)-shown):] {
		if a.Lost.Position > 0 {
			found.Positions = append(found.Positions, a.Lost.Position)
			found.Evidence = append(found.Evidence, "held to be lost "+l.ago(a.LostAt)+", "+l.grounds(a.Evidence)+at(a.Lost))
		}
		found.Positions = append(found.Positions, a.Position)
		found.Evidence = append(found.Evidence, fmt.Sprintf("it beat again %s, after %s and %s had been taken from it%s",
			l.ago(a.At), count(a.Taken.Claims, "claim"), count(a.Taken.Permits, "permit"), at(a.Mark)))
	}
	return found
}

// grounds is by which evidence, by whom, a worker was held to be lost.
func (l *look) grounds(e events.Evidence) string {
	text := string(e.Reason)
	if e.Reason == events.ReasonSilent {
		text = fmt.Sprintf("silent for %s, more than %s", Span(e.Age), Span(fsm.Member{Interval: e.Interval, FenceAfter: e.FenceAfter}.Bound(e.After)))
	}
	who := "a command line"
	if e.Decider != (events.ID{}) {
		who = l.worker(e.Decider)
	}
	text += ", decided by " + who
	if e.Sweep != (events.ID{}) {
		text += " in " + l.Names.Entity(events.SweepEntity(e.Sweep))
	}
	if e.Term > 0 {
		text += fmt.Sprintf(" under term %d", e.Term)
	}
	return text
}
