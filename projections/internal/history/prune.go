package history

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// tellRows is how many rows a prune tells in one commit: few, so that some need several.
const tellRows = 7

// Prune lets go of the oldest commits, up to n events of them and one commit at least, as old as they may be but not of this moment, and of none
// behind a cursor that is not the zero. What is kept is told first, page by page.
func (h *History) Prune(n int, upto store.Cursor) error {
	for range 100 {
		more, err := h.prune(fsm.Prune{Before: h.Now(), Events: n, Rows: tellRows, By: "ann", Detail: "disk"}, upto)
		if err != nil || !more {
			return err
		}
	}
	return fmt.Errorf("prune of %d events: after 100 pages of rows nothing had gone", n)
}

// Tell is a prune that was broken off: a row that needs it has told its state, and nothing has gone. Where none needs it, the events go.
func (h *History) Tell(n int) error {
	_, err := h.prune(fsm.Prune{Before: h.Now(), Events: n, Rows: 1, By: "ann", Detail: "disk"}, "")
	return err
}

// prune carries out one page, and reports whether another one is to come.
func (h *History) prune(c fsm.Prune, upto store.Cursor) (more bool, err error) {
	known := calls.Known{Now: h.Now(), Upto: upto}
	for range 2 { // once more with the permits that it must see
		call, seen := calls.Prune(h.origin(), c, known)
		receipt, err := h.Do(call)
		if err != nil || len(seen.Unseen) == 0 {
			n := len(receipt.Events)
			return n > 0 && receipt.Events[n-1].Event.Type() != events.TypeLogPruned, err
		}
		known = known.See(seen.Unseen)
	}
	return false, fmt.Errorf("prune of %d events: locks whose permits it was not given", c.Events)
}

// Log is what is kept of the log.
func (h *History) Log(ctx context.Context) ([]events.Recorded, error) {
	first, err := h.Store.First(ctx)
	if err != nil {
		return nil, err
	}
	var list []events.Recorded
	for r, err := range h.Store.Read(ctx, first, store.Filter{}) {
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}
