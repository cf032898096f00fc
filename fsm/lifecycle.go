package fsm

import (
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/events"
	lfsm "github.com/looplab/fsm"
)

// Lifecycle is the one table of what may happen to entities of a kind: (from, event, to). It is written down once, as a looplab/fsm
// machine, which also draws it. The dense array that decisions look into is derived from that machine by asking it for every pair.
//
// Where an event leads depends on its state alone, but for one case: a permit that comes back leaves its lock held while others are out.
// That branch has a name of its own in the table, "lock.released, others hold".
type Lifecycle struct {
	kind   events.Kind
	table  []lfsm.EventDesc
	next   [96][128]events.State // [from][type]; Absent where the table has no such transition
	branch [96][128]events.State // the same of the named branch
}

// Edge is one transition of a table.
type Edge struct {
	From  events.State
	Event events.Type
	To    events.State
}

// edge says that an event leads from any of these states to that one.
func edge(event events.Type, to events.State, from ...events.State) lfsm.EventDesc {
	desc := lfsm.EventDesc{Name: event.String(), Dst: to.String()}
	for _, state := range from {
		desc.Src = append(desc.Src, state.String())
	}
	return desc
}

// othersHold names the branch of a permit that comes back while others are out.
const othersHold = ", others hold"

// branch is an edge that the table has beside the plain one.
func branch(event events.Type, to events.State, from ...events.State) lfsm.EventDesc {
	desc := edge(event, to, from...)
	desc.Name += othersHold
	return desc
}

// newLifecycle builds a kind's table. The states and types it speaks of must be in package events.
func newLifecycle(kind events.Kind, table ...lfsm.EventDesc) *Lifecycle {
	l := &Lifecycle{kind: kind, table: table}
	machine := lfsm.NewFSM(events.Absent.String(), table, nil)
	for from := range l.next {
		for event := range l.next[from] {
			name := events.Type(event).String()
			l.next[from][event] = l.probe(machine, events.State(from), name)
			l.branch[from][event] = l.probe(machine, events.State(from), name+othersHold)
		}
	}
	return l
}

// probe asks the machine whether an event is possible in a state, and the table where it leads. It fires nothing: looplab's Event runs
// callbacks, takes locks and calls a self-transition an error.
func (l *Lifecycle) probe(machine *lfsm.FSM, from events.State, event string) events.State {
	if !from.Known() {
		return events.Absent
	}
	machine.SetState(from.String())
	if !machine.Can(event) {
		return events.Absent
	}
	for to := range events.State(len(l.next)) {
		for _, desc := range l.table {
			if desc.Name == event && desc.Dst == to.String() && slices.Contains(desc.Src, from.String()) {
				return to
			}
		}
	}
	return events.Absent
}

// Kind is the kind of entity that lives by this table.
func (l *Lifecycle) Kind() events.Kind { return l.kind }

// Next says where an event leads from a state, and whether the table has that transition at all. Of two it is the plain one.
func (l *Lifecycle) Next(from events.State, event events.Type) (events.State, bool) {
	if int(from) >= len(l.next) || int(event) >= len(l.next[0]) {
		return events.Absent, false
	}
	to := l.next[from][event]
	return to, to != events.Absent
}

// Leads reports whether the table has the transition.
func (l *Lifecycle) Leads(from events.State, event events.Type, to events.State) bool {
	next, ok := l.Next(from, event)
	return ok && to != events.Absent && (next == to || l.branch[from][event] == to)
}

// Edges lists the table, by from, then event, then the plain edge before the branch.
func (l *Lifecycle) Edges() []Edge {
	var list []Edge
	for from := range l.next {
		for event := range l.next[from] {
			for _, to := range []events.State{l.next[from][event], l.branch[from][event]} {
				if to != events.Absent {
					list = append(list, Edge{events.State(from), events.Type(event), to})
				}
			}
		}
	}
	return list
}

// States lists the states of the table, in the order of their numbers, the absent one first.
func (l *Lifecycle) States() []events.State {
	seen := map[events.State]bool{events.Absent: true}
	for _, e := range l.Edges() {
		seen[e.From], seen[e.To] = true, true
	}
	list := make([]events.State, 0, len(seen))
	for state := range seen {
		list = append(list, state)
	}
	slices.Sort(list)
	return list
}

// Mermaid draws the table as a Mermaid state diagram.
func (l *Lifecycle) Mermaid() (string, error) {
	return lfsm.VisualizeForMermaidWithGraphType(lfsm.NewFSM(events.Absent.String(), l.table, nil), lfsm.StateDiagram)
}

// DOT draws the table for Graphviz.
func (l *Lifecycle) DOT() string {
	return lfsm.Visualize(lfsm.NewFSM(events.Absent.String(), l.table, nil))
}

// Lifecycles lists all tables.
func Lifecycles() []*Lifecycle {
	return []*Lifecycle{messageLife, topicLife, workerLife, lockLife, leaderLife, sweepLife, clockLife, logLife}
}

// LifecycleOf is the table of a kind.
func LifecycleOf(kind events.Kind) (*Lifecycle, error) {
	for _, l := range Lifecycles() {
		if l.kind == kind {
			return l, nil
		}
	}
	return nil, fmt.Errorf("kind %s: no lifecycle in this version", kind)
}
