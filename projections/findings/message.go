package findings

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

// deadLetters is a finding for each of a topic's newest dead letters, and one for all older ones.
func (l *look) deadLetters() []Finding {
	byTopic := map[string][]projections.DeadLetter{}
	for _, d := range l.Topics.DeadLetters() {
		byTopic[d.Topic] = append(byTopic[d.Topic], d)
	}
	var list []Finding
	for topic, dead := range byTopic {
		if older := len(dead) - shown; older > 0 {
			list = append(list, l.olderDead(topic, dead[:older]))
			dead = dead[older:]
		}
		for _, d := range dead {
			list = append(list, l.deadLetter(d))
		}
	}
	return list
}

func (l *look) deadLetter(d projections.DeadLetter) Finding {
	subject := events.MessageEntity(d.Message)
	text := fmt.Sprintf("%s was dead-lettered after %s (%s)", l.Names.Entity(subject), count(d.Attempts, "attempt"), d.Reason)
	if d.Error != "" {
		text += ": " + events.Printable(d.Error, longest)
	}
	evidence := fmt.Sprintf("dead-lettered %s on %s%s", l.ago(d.At), l.Names.Entity(events.TopicEntity(d.Topic)), at(d.Mark))
	return Finding{
		Code: MessageDeadLettered, Severity: Warning, Subject: subject, Since: d.At, Positions: []int64{d.Position},
		Text: text, Evidence: []string{evidence},
		Next: []string{l.trace(d.Message), l.command("redrive " + l.Names.ID(d.Message) + ` --reason "fixed"`)},
	}
}

func (l *look) olderDead(topic string, dead []projections.DeadLetter) Finding {
	subject := events.TopicEntity(topic)
	return Finding{
		Code: MessageDeadLettered, Severity: Warning, Subject: subject, Since: dead[0].At, Positions: []int64{dead[0].Position},
		Text:     fmt.Sprintf("%s has %s beside the newest %d", l.Names.Entity(subject), count(len(dead), "older dead letter"), shown),
		Evidence: []string{"the oldest is " + l.Names.Entity(events.MessageEntity(dead[0].Message)) + ", " + l.ago(dead[0].At) + at(dead[0].Mark)},
		Next:     []string{l.trace(dead[0].Message)},
	}
}

// refusals is a finding for each worker whose results came too late a short while ago.
func (l *look) refusals() []Finding {
	bySender := map[events.ID][]projections.Refusal{}
	for _, r := range l.Refusals.Recent() {
		if l.age(r.At) <= Recent {
			bySender[r.Sender] = append(bySender[r.Sender], r)
		}
	}
	var list []Finding
	for sender, refused := range bySender {
		list = append(list, l.refused(sender, refused))
	}
	return list
}

func (l *look) refused(sender events.ID, refused []projections.Refusal) Finding {
	subject := events.WorkerEntity(sender)
	found := Finding{
		Code: Refusals, Severity: Info, Subject: subject, Since: refused[0].At,
		Text: fmt.Sprintf("%s of %s came too late and changed nothing", count(len(refused), "result"), l.Names.Entity(subject)),
		Next: []string{l.trace(refused[len(refused)-1].Message)},
	}
	for _, r := range refused[max(0, len(refused)-shown):] {
		found.Positions = append(found.Positions, r.Position)
		found.Evidence = append(found.Evidence, fmt.Sprintf("%s: %s with token %d, %s, %s %s%s",
			l.Names.Entity(events.MessageEntity(r.Message)), events.Printable(r.Command, longest), r.Sent, current(r), r.Reason, l.ago(r.At), at(r.Mark)))
	}
	return found
}

// current says what a refused result met.
func current(r projections.Refusal) string {
	if r.Found == 0 {
		return "the message was " + r.State.String()
	}
	return fmt.Sprintf("%d was current", r.Found)
}
