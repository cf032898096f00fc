package findings

import (
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

func (l *look) topics() []Finding {
	var list []Finding
	for _, t := range l.Topics.All() {
		if t.Full() {
			list = append(list, l.atLimit(t)...)
		}
		if t.Paused && t.Queued > 0 {
			list = append(list, l.paused(t))
		}
		if t.Counting {
			list = append(list, l.counting(t))
		}
	}
	return list
}

// atLimit is the finding about a full topic: wedged where no holder of a slot lives, doubtful where no claim has ended for long.
// A full topic whose claims end is busy, and no finding.
func (l *look) atLimit(t projections.Topic) []Finding {
	subject := events.TopicEntity(t.Name)
	found := Finding{Code: TopicAtLimit, Subject: subject, Since: t.FullSince.At}
	quiet := t.FullSince // since when no slot has come free
	if t.Ended.Position > quiet.Position {
		quiet = t.Ended
	}
	claims := counted(l.Topics.Claims(t.Name))
	if len(claims) == 0 {
		return nil // a damaged log may count what nobody holds; verify tells
	}
	found.Next = []string{l.trace(claims[0].Message)}
	dead, evidence := 0, []string{}
	for i, c := range claims {
		v := l.judge(c.Worker)
		if v.life != alive {
			dead++
		}
		if i < shown {
			evidence = append(evidence, l.slots(claims[i : i+1])[0]+", "+l.Names.Entity(events.WorkerEntity(c.Worker))+": "+v.why)
		}
	}
	if more := len(claims) - shown; more > 0 {
		evidence = append(evidence, fmt.Sprintf("and %d more", more))
	}
	head := fmt.Sprintf("%s is at its limit (%d of %d)", l.Names.Entity(subject), t.Counted, t.Limit)
	switch {
	case dead == len(claims):
		found.Severity = Critical
		found.Text = head + ", and no holder of a slot lives"
	case l.age(quiet.At) >= LongClaim:
		found.Severity = Warning
		found.Text = fmt.Sprintf("%s, and no claim has ended for %s", head, Span(l.age(quiet.At)))
	default:
		return nil
	}
	found.Positions = positions(claims)
	found.Evidence = append(evidence, fmt.Sprintf("%d queued", t.Queued))
	return []Finding{found}
}

// counted is the claims that count towards the limit.
func counted(claims []projections.Claim) []projections.Claim {
	list := claims[:0]
	for _, c := range claims {
		if c.Counted {
			list = append(list, c)
		}
	}
	return list
}

func (l *look) paused(t projections.Topic) Finding {
	subject := events.TopicEntity(t.Name)
	return Finding{
		Code: TopicPaused, Severity: Warning, Subject: subject, Since: t.Pause.At, Positions: []int64{t.Pause.Position},
		Text:     fmt.Sprintf("%s has been paused for %s, %s", l.Names.Entity(subject), Span(l.age(t.Pause.At)), waiting(t.Queued)),
		Evidence: []string{"paused" + said(t.Pause)},
	}
}

func (l *look) counting(t projections.Topic) Finding {
	subject := events.TopicEntity(t.Name)
	found := Finding{
		Code: TopicCounting, Severity: Info, Subject: subject, Since: t.Set.At, Positions: []int64{t.Set.Position},
		Text: fmt.Sprintf("%s grants nothing until the claims from before its limit of %d are counted", l.Names.Entity(subject), t.Limit),
		Evidence: []string{
			"limit set" + said(t.Set),
			fmt.Sprintf("%d of %d running are counted, %s", t.Counted, t.Running, waiting(t.Queued)),
		},
	}
	if t.Queued > 0 {
		found.Severity = Warning
	}
	return found
}

// said is who made a setting, with their words and the event that shows it.
func said(n projections.Notice) string {
	text := at(n.Mark)
	if n.By != "" {
		text = " by " + events.Printable(n.By, longest) + text
	}
	if n.Detail != "" {
		text += ": " + events.Printable(n.Detail, longest)
	}
	return text
}

func waiting(n int) string {
	if n == 1 {
		return "1 message waits"
	}
	return fmt.Sprintf("%d messages wait", n)
}
