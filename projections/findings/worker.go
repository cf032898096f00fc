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

// life is what is known of a worker's being alive.
type life uint8

const (
	alive life = iota
	silent
	gone
)

// verdict is whether a worker lives, with the evidence.
type verdict struct {
	life  life
	why   string
	since time.Time
}

// judge says whether the holder of a claim lives. A worker that the store keeps no heartbeats of is alive until it is proven to be gone.
func (l *look) judge(id events.ID) verdict {
	w, known := l.member[id]
	beat, beaten := l.beats[id]
	last := beat.At // zero where there is none: nobody knows when it was heard of
	switch {
	case l.gone[id]:
		return verdict{gone, fmt.Sprintf("its process %shas ended: the kernel let go of its lock", place(w)), last}
	case w.State == events.Lost && w.Evidence.Reason == "": // the log has let go of why
		return verdict{gone, "it was found gone " + l.ago(w.Lost.At) + at(w.Lost), w.Lost.At}
	case w.State == events.Lost:
		return verdict{gone, fmt.Sprintf("it was found gone (%s)%s", w.Evidence.Reason, at(w.Lost)), w.Lost.At}
	case w.State == events.Stopped:
		return verdict{gone, "it has stopped", last}
	case w.State == events.Purged:
		return verdict{gone, "it was lost long ago and is forgotten", last}
	case !known || w.State == events.Absent:
		return verdict{gone, "it was never made known to the store", last}
	case !l.Heart:
		return verdict{life: alive, why: "it is not known to have ended"}
	}
	why := "last heartbeat " + l.ago(last)
	if !beaten {
		last = w.Started.At
		why = "no heartbeat since it started " + l.ago(last)
	}
	interval := cmp.Or(beat.Interval, w.HeartbeatInterval)
	if interval <= 0 {
		return verdict{alive, why, last}
	}
	why += ", it intends one every " + Span(interval)
	if (fsm.Member{LastBeatAt: last, Interval: interval}).Silence(l.clock, l.Now) > SilentAfter*interval {
		return verdict{silent, why, last}
	}
	return verdict{alive, why, last}
}

// place says where a worker's process runs, as far as it said.
func place(w projections.Worker) string {
	switch {
	case w.PID == 0:
		return ""
	case w.Host == "":
		return fmt.Sprintf("%d ", w.PID)
	}
	return fmt.Sprintf("%d on %s ", w.PID, events.Printable(w.Host, longest))
}

// at names the event that shows something.
func at(m projections.Mark) string { return fmt.Sprintf(" (position %d)", m.Position) }

func (l *look) workers() []Finding {
	var list []Finding
	for _, w := range l.fleet {
		if len(w.Claims)+len(w.Permits) > 0 {
			list = append(list, l.holder(w)...)
		}
		if w.Gap.Position > 0 && l.age(w.Gap.At) <= Recent {
			list = append(list, l.gap(w))
		}
	}
	return list
}

// holder is the finding about a worker that holds claims or permits, where it does not live.
func (l *look) holder(w projections.Worker) []Finding {
	v := l.judge(w.ID)
	found := Finding{Subject: events.WorkerEntity(w.ID), Since: v.since, Positions: l.estate(w)}
	found.Evidence = slices.Concat([]string{v.why}, l.slots(w.Claims), l.permits(w.Permits))
	switch v.life {
	case alive:
		return nil
	case gone:
		found.Code, found.Severity = WorkerGone, Critical
		found.Text = fmt.Sprintf("%s is gone and still holds %s", l.worker(w.ID), holds(w))
		found.Evidence = append(found.Evidence, l.swept()...)
		found.Next = append(found.Next, l.giveBack())
	case silent:
		found.Code, found.Severity = WorkerSilent, Warning
		found.Text = fmt.Sprintf("%s holds %s and has not been heard of for %s", l.worker(w.ID), holds(w), Span(l.age(v.since)))
		found.Next = append(found.Next, l.command("workers "+l.Names.ID(w.ID)))
	}
	if len(w.Claims) > 0 {
		found.Next = append(found.Next, l.trace(w.Claims[0].Message))
	}
	return []Finding{found.since(w)}
}

// since fills in when it began where nothing is known of the worker but what it took.
func (f Finding) since(w projections.Worker) Finding {
	switch {
	case !f.Since.IsZero():
	case len(w.Claims) > 0:
		f.Since = w.Claims[0].At
	case len(w.Permits) > 0:
		f.Since = w.Permits[0].At
	}
	return f
}

// holds is what a worker holds, in words.
func holds(w projections.Worker) string {
	var parts []string
	if n := len(w.Claims); n > 0 {
		parts = append(parts, count(n, "claim"))
	}
	if n := len(w.Permits); n > 0 {
		parts = append(parts, count(n, "permit"))
	}
	return joined(parts...)
}

// estate is the events that show what a worker holds, and that it was lost.
func (l *look) estate(w projections.Worker) []int64 {
	marks := positions(w.Claims)
	for _, p := range w.Permits[:min(len(w.Permits), shown)] {
		marks = append(marks, p.Position)
	}
	if w.Lost.Position > 0 {
		marks = append(marks, w.Lost.Position)
	}
	slices.Sort(marks)
	return marks
}

// giveBack is the command that gives back what the dead hold.
func (l *look) giveBack() string {
	if l.Batch != "" {
		return "foundling run --resume " + ShellWord(l.Batch)
	}
	return l.command("sweep --dry-run")
}

// gap is the finding about heartbeats that did not come for a while. Where that was longer than the worker's fence, it ended its handlers'
// contexts by itself meanwhile.
func (l *look) gap(w projections.Worker) Finding {
	subject := events.WorkerEntity(w.ID)
	found := Finding{
		Code: WorkerGap, Severity: Info, Subject: subject, Since: w.Gap.FromAt, Positions: []int64{w.Gap.Position},
		Text: fmt.Sprintf("%s was not heard of for %s, until %s",
			l.Names.Entity(subject), Span(w.Gap.ToAt.Sub(w.Gap.FromAt)), l.ago(w.Gap.ToAt)),
		Evidence: []string{
			fmt.Sprintf("heartbeats at %s and %s%s", l.Names.Time(w.Gap.FromAt), l.Names.Time(w.Gap.ToAt), at(w.Gap.Mark)),
			fmt.Sprintf("%s since it started %s", count(w.Gaps, "gap"), l.ago(w.Started.At)),
		},
	}
	if w.FenceAfter > 0 && w.Gap.ToAt.Sub(w.Gap.FromAt) >= w.FenceAfter {
		found.Code, found.Severity = WorkerFenced, Warning
		found.Text += ", and ended its handlers' contexts by itself"
		found.Evidence = append(found.Evidence, fmt.Sprintf("it does so %s after its last heartbeat that came through", Span(w.FenceAfter)))
		found.Next = []string{l.command("workers " + l.Names.ID(w.ID))}
	}
	return found
}

// slots is a line for each claim, the oldest first.
func (l *look) slots(claims []projections.Claim) []string {
	var list []string
	for _, c := range claims[:min(len(claims), shown)] {
		list = append(list, fmt.Sprintf("%s, attempt %d, claimed %s%s",
			l.Names.Entity(events.MessageEntity(c.Message)), c.Attempt, l.ago(c.At), at(c.Mark)))
	}
	if more := len(claims) - shown; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return list
}

func positions(claims []projections.Claim) []int64 {
	list := make([]int64, 0, min(len(claims), shown))
	for _, c := range claims[:min(len(claims), shown)] {
		list = append(list, c.Position)
	}
	return list
}
