package findings

import (
	"fmt"
	"slices"

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
		list = append(list, l.differs(t)...)
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
		evidence = append(evidence, l.swept()...)
		found.Next = append(found.Next, l.giveBack(), l.requeue(claims, `--reason "its worker is gone"`))
	case l.age(quiet.At) >= LongClaim:
		found.Severity = Warning
		found.Text = fmt.Sprintf("%s, and no claim has ended for %s", head, Span(l.age(quiet.At)))
		found.Next = append(found.Next, l.command("topics "+ShellWord(t.Name)), l.requeue(claims[:1], `--force --reason "it does not end"`))
	default:
		return nil
	}
	found.Positions = positions(claims)
	found.Next = append(found.Next, l.trace(claims[0].Message))
	wait := fmt.Sprintf("%d queued", t.Queued)
	if t.Blocked > 0 {
		wait += fmt.Sprintf(", %d blocked by their locks", t.Blocked)
	}
	found.Evidence = append(evidence, wait)
	return []Finding{found}
}

// requeue is the command that takes claims from their workers.
func (l *look) requeue(claims []projections.Claim, flags string) string {
	words := "requeue "
	for _, c := range claims[:min(len(claims), shown)] {
		words += l.Names.ID(c.Message) + " "
	}
	return l.command(words + flags)
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

// differs is the finding about a topic for which the code of live workers declares another limit than it has. A limit in code is what a
// topic starts with; nothing but a command changes it after that, so that two deploys do not change it back and forth.
func (l *look) differs(t projections.Topic) []Finding {
	subject := events.TopicEntity(t.Name)
	found := Finding{Code: LimitDiffers, Severity: Warning, Subject: subject, Since: t.Set.At}
	found.Next = []string{l.command("topics " + ShellWord(t.Name))}
	workers := 0
	for _, w := range l.fleet {
		limit, declared := limitOf(w, t.Name)
		if !declared || limit == t.Limit || w.State != events.Live || l.judge(w.ID).life != alive {
			continue
		}
		if workers++; workers <= shown {
			found.Evidence = append(found.Evidence, fmt.Sprintf("%s declares %d, started %s%s", l.worker(w.ID), limit, l.ago(w.Started.At), at(w.Started)))
			found.Positions = append(found.Positions, w.Started.Position)
		}
	}
	if workers == 0 {
		return nil
	}
	if workers > shown {
		found.Evidence = append(found.Evidence, fmt.Sprintf("and %d more", workers-shown))
	}
	has := fmt.Sprintf("a limit of %d", t.Limit)
	if t.Limit == 0 {
		has = "no limit"
	}
	found.Text = fmt.Sprintf("%s has %s, and the code of %s declares another", l.Names.Entity(subject), has, count(workers, "live worker"))
	if t.Set.Position > 0 {
		found.Evidence = append(found.Evidence, "the topic's own was set"+said(t.Set))
		found.Positions = append(found.Positions, t.Set.Position)
		slices.Sort(found.Positions)
	}
	return []Finding{found}
}

// limitOf is the limit that a worker's code declares of a topic.
func limitOf(w projections.Worker, topic string) (int, bool) {
	i := slices.Index(w.Topics, topic)
	if i < 0 || i >= len(w.Limits) || w.Limits[i] == 0 {
		return 0, false
	}
	return w.Limits[i], true
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
