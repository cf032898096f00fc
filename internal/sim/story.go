package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
)

// line is an event as the stories show it: ids by order of appearance, times since the start.
func (s *simulation) line(r events.Recorded) string { return s.names().Line(r) }

// plain replaces every id in a text by its name.
func (s *simulation) plain(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names()
	for _, r := range s.log {
		text = strings.ReplaceAll(text, r.Entity.ID.String(), names.Short(r.Entity.ID))
	}
	return text
}

// names gives everybody in the log a name. It is for failures: it goes through the whole log.
func (s *simulation) names() *events.Names {
	words := map[events.ID]string{}
	counts := map[string]int{}
	name := func(letter string, id events.ID) {
		if words[id] == "" && id != (events.ID{}) {
			counts[letter]++
			words[id] = fmt.Sprintf("%s%d", letter, counts[letter])
		}
	}
	for _, r := range s.log {
		switch r.Entity.Kind {
		case events.KindMessage:
			name("m", r.Entity.ID)
		case events.KindWorker:
			name("w", r.Entity.ID)
		case events.KindSweep:
			name("s", r.Entity.ID)
		}
	}
	return &events.Names{
		Short: func(id events.ID) string {
			if word, ok := words[id]; ok {
				return word
			}
			return id.String()
		},
		Clock: func(t time.Time) string { return "+" + t.Sub(s.began).Round(time.Millisecond).String() },
	}
}

// story is the plan, and the log as a scenario shows it.
func (s *simulation) story() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString(s.plan.String())
	names := s.names()
	for _, r := range s.log {
		fmt.Fprintf(&b, "%s (%s)\n", names.Line(r), r.Commit.Command.Actor)
	}
	return b.String()
}

// words are what an event counts as.
func words(r events.Recorded) []string {
	typ := r.Event.Type().String()
	reason := func(reason events.Reason) []string { return []string{typ, typ + ": " + string(reason)} }
	switch e := r.Event.(type) {
	case *events.MessageRequeued:
		return reason(e.Reason)
	case *events.MessageDeadLettered:
		return reason(e.Reason)
	case *events.MessageCancelled:
		return reason(e.Reason)
	case *events.MessageOrphaned:
		return reason(e.Evidence.Reason)
	case *events.LockOrphaned:
		return reason(e.Evidence.Reason)
	case *events.WorkerLost:
		return reason(e.Evidence.Reason)
	case *events.MessageRefused:
		return reason(e.Reason)
	case *events.SweepRefused:
		return reason(e.Reason)
	case *events.SweepFinished:
		if e.Spared > 0 {
			return []string{typ, typ + ": spared"}
		}
	case *events.LockConfigured, *events.LockAcquired:
		return []string{typ}
	}
	return []string{typ}
}

// besideError is what breaks the law that a lock is for.
type besideError struct {
	sim    *simulation
	shift  *shift
	newest events.Token
}

func (e besideError) Error() string {
	names := e.sim.names()
	return fmt.Sprintf("law 7: at %s the handler of message %s (token %d) of process %d runs without knowing that permit %d of %s was taken from it; the newest is %d",
		names.Clock(time.Now()), names.Short(e.shift.message), e.shift.token, e.shift.life.process.n+1, e.shift.permit, e.shift.lock, e.newest)
}
