package fsm

import (
	"github.com/foundling-go/foundling/events"
	lfsm "github.com/looplab/fsm"
)

// Machine is looplab's machine of the table, in a state.
func (l *Lifecycle) Machine(state events.State) *lfsm.FSM {
	return lfsm.NewFSM(state.String(), l.table, nil)
}
