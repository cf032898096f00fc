package model

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/scenario"
)

// tally counts what the scripts have met.
type tally struct {
	accepted map[string]int
	refused  map[refusal]int
	events   map[events.Type]int
	guards   map[events.Reason]int // that refused a sweep
}

func newTally() *tally {
	return &tally{map[string]int{}, map[refusal]int{}, map[events.Type]int{}, map[events.Reason]int{}}
}

// add counts every commit by its command, every event by the command of one entity that it follows from, and every refusal.
func (t *tally) add(r scenario.Result) {
	var commit events.ID
	for _, e := range r.Events {
		t.events[e.Event.Type()]++
		if refused, ok := e.Event.(*events.SweepRefused); ok {
			t.guards[refused.Reason]++
		}
		if e.Commit.ID != commit {
			commit = e.Commit.ID
			t.accepted[e.Commit.Command.Name]++
		}
		for _, name := range follows(e.Event) {
			if name != e.Commit.Command.Name {
				t.accepted[name]++
			}
		}
	}
	for _, refused := range r.Refusals {
		t.refused[refusal{refused.Command, string(refused.Reason)}]++
	}
}

// follows is the commands of one entity that an event follows from.
func follows(e events.Event) []string {
	switch e := e.(type) {
	case *events.MessageEnqueued:
		return []string{fsm.EnqueueMessage{}.Name()}
	case *events.MessageClaimed:
		return []string{fsm.ClaimMessage{}.Name()}
	case *events.MessageCounted:
		return []string{fsm.CountMessage{}.Name()}
	case *events.MessageCompleted:
		return []string{fsm.CompleteMessage{}.Name()}
	case *events.MessageOrphaned:
		return []string{fsm.OrphanMessage{}.Name()}
	case *events.MessageCancelled:
		return []string{fsm.CancelMessage{}.Name()}
	case *events.MessageRequeued:
		switch e.Reason {
		case events.ReasonRetry:
			return []string{fsm.FailMessage{}.Name()}
		case events.ReasonReleased, events.ReasonSnoozed, events.ReasonUnclaimed:
			return []string{fsm.ReleaseMessage{}.Name()}
		}
	case *events.MessageDeadLettered:
		switch e.Reason {
		case events.ReasonExhausted:
			return []string{fsm.FailMessage{}.Name()}
		case events.ReasonHandler:
			return []string{fsm.DeadLetterMessage{}.Name()}
		}
	case *events.TopicConfigured:
		return []string{fsm.ConfigureTopic{}.Name()}
	case *events.TopicCounted:
		return []string{fsm.CountTopic{}.Name()}
	case *events.WorkerLost:
		return []string{fsm.LoseWorker{}.Name()}
	case *events.MessageBlocked, *events.MessageDiscarded:
		return []string{fsm.BlockMessage{}.Name()}
	case *events.MessageUnblocked:
		return []string{fsm.UnblockMessage{}.Name()}
	}
	if _, ok := events.SnapshotOf(e); ok {
		return []string{fsm.Snapshot{}.Name()}
	}
	return nil
}

// complete fails where a command was never accepted, or an event or a refusal that can be met was never met.
func (t *tally) complete(tb testing.TB) {
	tb.Helper()
	for _, name := range commandNames() {
		tb.Logf("%7d %s", t.accepted[name], name)
		if t.accepted[name] == 0 {
			tb.Errorf("command %s was never accepted", name)
		}
	}
	want := reachable(tb)
	for _, r := range slices.SortedFunc(maps.Keys(want), compareRefusals) {
		tb.Logf("%7d %s refused: %s", t.refused[r], r.command, r.reason)
		if t.refused[r] == 0 {
			tb.Errorf("command %s was never refused as %s", r.command, r.reason)
		}
	}
	for _, typ := range events.Types() {
		tb.Logf("%7d %s", t.events[typ], typ)
		if t.events[typ] == 0 {
			tb.Errorf("there was never a %s", typ)
		}
	}
	for _, reason := range events.SweepRefusals() {
		tb.Logf("%7d sweep refused: %s", t.guards[reason], reason)
		if t.guards[reason] == 0 {
			tb.Errorf("no sweep was ever refused as %s", reason)
		}
	}
	for r := range t.refused {
		if !want[r] {
			tb.Errorf("command %s was refused as %s, which is not thought to be possible", r.command, r.reason)
		}
	}
}

func compareRefusals(a, b refusal) int {
	return slices.Compare([]string{a.command, a.reason}, []string{b.command, b.reason})
}

// The commands, by what may send them. A claim, a counting and a reclaim choose their messages themselves and are not refused by them.
var (
	results = []fsm.MessageCommand{
		fsm.CompleteMessage{Token: 2}, fsm.FailMessage{Token: 2}, fsm.ReleaseMessage{Token: 2}, fsm.DeadLetterMessage{Token: 2},
		fsm.CancelMessage{Token: 2},
	}
	operatorCommands = []fsm.MessageCommand{fsm.CancelMessage{}, fsm.TakeBackMessage{}, fsm.RedriveMessage{}}
	chosen           = []fsm.MessageCommand{
		fsm.EnqueueMessage{}, fsm.ClaimMessage{}, fsm.CountMessage{}, fsm.OrphanMessage{}, fsm.BlockMessage{}, fsm.UnblockMessage{},
	}
	topicCommands  = []fsm.TopicCommand{fsm.ConfigureTopic{}, fsm.PauseTopic{}, fsm.ResumeTopic{}}
	workerCommands = []fsm.WorkerCommand{fsm.StartWorker{}, fsm.StopWorker{}, fsm.LoseWorker{}, fsm.ReturnWorker{}, fsm.GapWorker{}, fsm.PurgeWorker{}}
)

// commandNames is every command that there is.
func commandNames() []string {
	names := []string{
		fsm.Enqueue{}.Name(), fsm.Claim{}.Name(), fsm.Settle{}.Name(), fsm.Reclaim{}.Name(), fsm.CountClaims{}.Name(), fsm.CountTopic{}.Name(),
		fsm.Acquire{}.Name(), fsm.Unlock{}.Name(), fsm.ForceRelease{}.Name(), fsm.ExpireLocks{}.Name(), fsm.ConfigureLock{}.Name(),
		fsm.ElectLeader{}.Name(), fsm.ResignLeader{}.Name(), fsm.StepClock{}.Name(), fsm.RecordSweep{}.Name(),
		fsm.Prune{}.Name(), fsm.Erase{}.Name(), fsm.Snapshot{}.Name(),
	}
	for _, c := range slices.Concat(results, operatorCommands, chosen) {
		names = append(names, c.Name())
	}
	for _, c := range topicCommands {
		names = append(names, c.Name())
	}
	for _, c := range workerCommands {
		names = append(names, c.Name())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// reachable is every refusal that the rules have, found by trying every command in every state that rests. Some depend on more than one
// entity's state.
func reachable(tb testing.TB) map[refusal]bool {
	found := map[refusal]bool{
		{fsm.Enqueue{}.Name(), string(events.ReasonMismatch)}:        true,
		{fsm.RedriveMessage{}.Name(), string(events.ReasonKeyTaken)}: true,
		{fsm.TakeBackMessage{}.Name(), string(events.ReasonAlive)}:   true,
		{fsm.Acquire{}.Name(), string(events.ReasonLockTaken)}:       true,
		{fsm.Unlock{}.Name(), string(events.ReasonNotHeld)}:          true,
		{fsm.Enqueue{}.Name(), string(events.ReasonPruned)}:          true,
		{fsm.Erase{}.Name(), string(events.ReasonNotFound)}:          true,
		{fsm.Erase{}.Name(), string(events.ReasonWrongState)}:        true,
	}
	note := func(err error) {
		var r *fsm.Refusal
		if errors.As(err, &r) {
			found[refusal{r.Command, string(r.Reason)}] = true
		}
	}
	now := time.Unix(0, 0)
	for _, state := range states(tb, events.KindMessage) {
		for _, c := range slices.Concat(results, operatorCommands) {
			for _, token := range []events.Token{2, 3} {
				m := fsm.Message{State: state}
				if state == events.Running {
					m.Token = token
				}
				_, err := m.Decide(c, now)
				note(err)
			}
		}
	}
	for _, state := range states(tb, events.KindTopic) {
		topic := fsm.Topic{Name: "mail", State: state}
		for _, c := range topicCommands {
			_, err := topic.Decide(c, now)
			note(err)
		}
		held := fsm.Held{Topics: map[string]fsm.Topic{"mail": topic}}
		_, err := fsm.CountClaims{Topic: "mail", Page: 1}.Decide(held)
		note(err)
	}
	for _, state := range states(tb, events.KindWorker) {
		for _, c := range workerCommands {
			_, err := fsm.Worker{State: state}.Decide(c, now)
			note(err)
		}
	}
	return found
}

// states is the states of a kind in which an entity can be found.
func states(tb testing.TB, kind events.Kind) []events.State {
	tb.Helper()
	life, err := fsm.LifecycleOf(kind)
	if err != nil {
		tb.Fatal(err)
	}
	return slices.DeleteFunc(life.States(), func(s events.State) bool { return s == events.Orphaned })
}
