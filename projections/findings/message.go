package findings

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

// deadLetters is a finding for each of a topic's newest dead letters, one for all older ones, and one for those whose workers died.
func (l *look) deadLetters() []Finding {
	byTopic, orphans := map[string][]projections.DeadLetter{}, map[string][]projections.DeadLetter{}
	for _, d := range l.Topics.DeadLetters() {
		if d.Reason == events.ReasonOrphanLimit {
			orphans[d.Topic] = append(orphans[d.Topic], d)
			continue
		}
		byTopic[d.Topic] = append(byTopic[d.Topic], d)
	}
	var list []Finding
	for topic, dead := range orphans {
		list = append(list, l.orphans(topic, dead))
	}
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
	evidence := fmt.Sprintf("dead-lettered %s on %s%s", l.ago(d.At), l.Names.Entity(events.TopicEntity(d.Topic)), at(d.Mark))
	if d.Reason == "" {
		text = fmt.Sprintf("%s was dead-lettered after %s, and the log has let go of why", l.Names.Entity(subject), count(d.Attempts, "attempt"))
		evidence = fmt.Sprintf("dead-lettered more than %s on %s%s", l.ago(d.At), l.Names.Entity(events.TopicEntity(d.Topic)), at(d.Mark))
	}
	if d.Error != "" {
		text += ": " + events.Printable(d.Error, longest)
	}
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

// orphans is the finding about messages of a topic that were given up since their workers died again and again: they may be what kills them.
func (l *look) orphans(topic string, dead []projections.DeadLetter) Finding {
	subject := events.TopicEntity(topic)
	found := Finding{
		Code: OrphansDeadLettered, Severity: Warning, Subject: subject, Since: dead[0].At,
		Text: fmt.Sprintf("%s of %s: dead-lettered since worker after worker died with them", count(len(dead), "message"), l.Names.Entity(subject)),
	}
	redrive := "redrive"
	for _, d := range dead[max(0, len(dead)-shown):] {
		found.Positions = append(found.Positions, d.Position)
		found.Evidence = append(found.Evidence, fmt.Sprintf("%s after %s, last held by %s, dead-lettered %s%s",
			l.message(d.Message), count(d.Attempts, "attempt"), l.worker(d.Worker), l.ago(d.At), at(d.Mark)))
		redrive += " " + l.Names.ID(d.Message)
	}
	if more := len(dead) - shown; more > 0 {
		found.Evidence = append(found.Evidence, fmt.Sprintf("and %d older ones", more))
	}
	found.Next = []string{l.trace(dead[len(dead)-1].Message), l.command(redrive + ` --reason "fixed"`)}
	return found
}

// refusals is a finding for each worker whose results or releases came too late a short while ago.
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
	found := Finding{Code: Refusals, Severity: Info, Subject: subject, Since: refused[0].At}
	results, releases := 0, 0
	for _, r := range refused {
		if r.Lock == "" {
			results++
		} else {
			releases++
		}
	}
	var what []string
	if results > 0 {
		what = append(what, count(results, "result"))
	}
	if releases > 0 {
		what = append(what, count(releases, "release"))
	}
	found.Text = fmt.Sprintf("%s of %s came too late and changed nothing", joined(what...), l.Names.Entity(subject))
	for _, r := range refused[max(0, len(refused)-shown):] {
		found.Positions = append(found.Positions, r.Position)
		found.Evidence = append(found.Evidence, fmt.Sprintf("%s, %s %s%s", l.late(r), r.Reason, l.ago(r.At), at(r.Mark)))
	}
	if last := refused[len(refused)-1]; last.Lock != "" {
		found.Next = []string{l.command("locks " + ShellWord(last.Lock))}
	} else {
		found.Next = []string{l.trace(last.Message)}
	}
	return found
}

// late says what came too late, and what it met.
func (l *look) late(r projections.Refusal) string {
	command := events.Printable(r.Command, longest)
	if r.Lock != "" {
		return fmt.Sprintf("%s: %s of permit %d, the lock was %s", l.lock(r.Lock), command, r.Sent, r.State)
	}
	return fmt.Sprintf("%s: %s with token %d, %s", l.message(r.Message), command, r.Sent, current(r))
}

// current says what a refused result met.
func current(r projections.Refusal) string {
	if r.Found == 0 {
		return "the message was " + r.State.String()
	}
	return fmt.Sprintf("%d was current", r.Found)
}
