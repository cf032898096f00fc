package fsm

import (
	"github.com/foundling-go/foundling/events"
	lfsm "github.com/looplab/fsm"
)

// OthersHold is the name of the branch, beside the event's.
const OthersHold = othersHold

// Machine is looplab's machine of the table, in a state.
func (l *Lifecycle) Machine(state events.State) *lfsm.FSM {
	return lfsm.NewFSM(state.String(), l.table, nil)
}
