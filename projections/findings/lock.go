package findings

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/projections"
)

func (l *look) locks() []Finding {
	var list []Finding
	for _, k := range l.Locks.All() {
		var lost []projections.Permit // whose holders are no more
		for _, p := range k.Out {
			switch {
			case l.judge(p.Worker).life == gone:
				lost = append(lost, p)
			case p.Ended.Position > 0 && l.age(p.Ended.At) > SilentAfter*l.interval(p.Worker):
				list = append(list, l.running(p))
			}
		}
		if len(lost) > 0 {
			list = append(list, l.holderGone(k, lost))
		}
		list = append(list, l.idle(k)...)
	}
	return append(list, l.repaired()...)
}

func (l *look) lock(name string) string { return l.Names.Entity(events.LockEntity(name)) }

// interval is how often a worker beats.
func (l *look) interval(worker events.ID) time.Duration {
	return cmp.Or(l.beats[worker].Interval, l.member[worker].HeartbeatInterval, fsm.DefaultHeartbeatInterval)
}

// holderGone is the finding about permits whose holders are no more.
func (l *look) holderGone(k projections.Lock, lost []projections.Permit) Finding {
	subject := events.LockEntity(k.Name)
	found := Finding{
		Code: LockHolderGone, Severity: Critical, Subject: subject, Since: lost[0].At,
		Text: fmt.Sprintf("%s is held by %s, which is gone", l.Names.Entity(subject), l.worker(lost[0].Worker)),
		Next: []string{l.giveBack(), l.command("release-lock " + ShellWord(k.Name) + ` --reason "its holder is gone"`)},
	}
	if k.Permits > 1 || len(lost) > 1 {
		found.Text = fmt.Sprintf("%s: %d of %s held by workers that are gone", l.Names.Entity(subject), len(lost), count(k.Permits, "permit"))
	}
	for i, line := range l.permits(lost) {
		if i < len(lost) && i < shown {
			line += ", " + l.worker(lost[i].Worker) + ": " + l.judge(lost[i].Worker).why
			found.Positions = append(found.Positions, lost[i].Position)
		}
		found.Evidence = append(found.Evidence, line)
	}
	if len(lost) < len(k.Out) { // others hold the rest
		found.Next = found.Next[:1]
		for _, p := range lost[:min(len(lost), shown)] {
			found.Next = append(found.Next, l.release(p, "its holder is gone"))
		}
	}
	found.Evidence = append(found.Evidence, l.waiters(k)...)
	found.Evidence = append(found.Evidence, l.swept()...)
	return found
}

// release is the command that takes one permit from its holder.
func (l *look) release(p projections.Permit, reason string) string {
	return l.command(fmt.Sprintf(`release-lock %s --token %d --reason "%s"`, ShellWord(p.Lock), p.Token, reason))
}

// running is the finding about a handler whose claim was ended from outside, and that has not ended: its worker would have said so.
func (l *look) running(p projections.Permit) Finding {
	subject := events.MessageEntity(p.Message)
	found := Finding{
		Code: HandlerRunning, Severity: Warning, Subject: subject, Since: p.Ended.At, Positions: []int64{p.Position, p.Ended.Position},
		Text: fmt.Sprintf("the handler of %s has not ended %s after its claim was, and keeps %s",
			l.Names.Entity(subject), Span(l.age(p.Ended.At)), l.lock(p.Lock)),
		Evidence: []string{
			l.claimEnd(p.Ended),
			fmt.Sprintf("%s, %s: %s", l.permit(p), l.worker(p.Worker), l.judge(p.Worker).why),
		},
		Next: []string{l.command("locks " + ShellWord(p.Lock)), l.release(p, "its handler has ended")},
	}
	if k, known := l.Locks.Lock(p.Lock); known {
		found.Evidence = append(found.Evidence, l.waiters(k)...)
	}
	return found
}

// claimEnd says how a claim was ended.
func (l *look) claimEnd(e projections.ClaimEnd) string {
	if e.Type == 0 {
		return "its claim was ended, and the log has let go of how" + at(e.Mark)
	}
	return fmt.Sprintf("its claim was ended by %s %s", e.Type, l.ago(e.At)) +
		said(projections.Notice{Mark: e.Mark, By: e.By, Detail: e.Detail})
}

// idle is the finding about a lock that has a free permit while of some topic all who wait are blocked: nobody will tell them.
func (l *look) idle(k projections.Lock) []Finding {
	var idle []projections.Waiters
	for _, w := range k.Waiters {
		if w.Blocked > 0 && w.Trying == 0 {
			idle = append(idle, w)
		}
	}
	if k.Free() <= 0 || len(idle) == 0 {
		return nil
	}
	first := slices.MinFunc(idle, func(a, b projections.Waiters) int { return cmp.Compare(a.Since.Position, b.Since.Position) })
	return []Finding{{
		Code: LockIdle, Severity: Critical, Subject: events.LockEntity(k.Name), Since: first.Since.At, Positions: []int64{first.Since.Position},
		Text:     fmt.Sprintf("%s is free, and who waits for it was not told: a fault of Foundling", l.lock(k.Name)),
		Evidence: append([]string{fmt.Sprintf("%d of %s out", len(k.Out), count(k.Permits, "permit"))}, l.waiters(k)...),
		Next:     []string{l.command("verify"), l.command("locks " + ShellWord(k.Name)), l.trace(first.Longest)},
	}}
}

// repaired is a finding for each lock whose waiters were told late, a short while ago.
func (l *look) repaired() []Finding {
	byLock := map[string][]projections.Repair{}
	for _, r := range l.Locks.Repairs() {
		if l.age(r.At) <= Recent {
			byLock[r.Lock] = append(byLock[r.Lock], r)
		}
	}
	var list []Finding
	for lock, repairs := range byLock {
		found := Finding{
			Code: LockRepaired, Severity: Warning, Subject: events.LockEntity(lock), Since: repairs[0].At,
			Text: fmt.Sprintf("%s was free while %s waited for it, until a repair: a fault of Foundling", l.lock(lock), count(len(repairs), "message")),
			Next: []string{l.command("verify"), l.trace(repairs[len(repairs)-1].Message)},
		}
		for _, r := range repairs[max(0, len(repairs)-shown):] {
			found.Positions = append(found.Positions, r.Position)
			found.Evidence = append(found.Evidence, fmt.Sprintf("%s of %s, %s%s",
				l.message(r.Message), l.Names.Entity(events.TopicEntity(r.Topic)), l.ago(r.At), at(r.Mark)))
		}
		list = append(list, found)
	}
	return list
}

// permits is a line for each permit, the oldest first.
func (l *look) permits(out []projections.Permit) []string {
	var list []string
	for _, p := range out[:min(len(out), shown)] {
		list = append(list, l.permit(p))
	}
	if more := len(out) - shown; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return list
}

func (l *look) permit(p projections.Permit) string {
	text := fmt.Sprintf("permit %d of %s, taken %s%s", p.Token, l.lock(p.Lock), l.ago(p.At), at(p.Mark))
	if p.Message != (events.ID{}) {
		text += " for " + l.message(p.Message)
	}
	return text
}

// waiters is a line of who waits for a lock; none where nobody does.
func (l *look) waiters(k projections.Lock) []string {
	n, parts := 0, []string{}
	for _, w := range k.Waiters {
		n += w.Blocked + w.Trying
		parts = append(parts, fmt.Sprintf("%d of %s since %s", w.Blocked+w.Trying, l.Names.Entity(events.TopicEntity(w.Topic)), l.ago(w.Since.At)))
	}
	if n == 0 {
		return nil
	}
	if more := len(parts) - shown; more > 0 {
		parts = append(parts[:shown], fmt.Sprintf("%d more topics", more))
	}
	return []string{waiting(n) + ": " + joined(parts...)}
}
