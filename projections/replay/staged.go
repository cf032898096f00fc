package replay

import (
	"context"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// staged checks what waits beside the log, where a store has that.
func (v *verifier) staged(ctx context.Context) error {
	stager, ok := store.As[store.Stager](v.store)
	if !ok {
		return nil
	}
	for one, err := range stager.Staged(ctx, store.StagedFilter{}) {
		v.report.Staged++
		var draft calls.Staging
		if err == nil {
			draft, err = calls.Unstaged(one)
		}
		if err == nil {
			if wrong := payload(draft.Payload, &one.Payload); wrong != nil {
				err = &events.Corrupt{Entity: events.MessageEntity(one.Message), Detail: "what is staged of it: " + wrong.Error()}
			}
		}
		if err := v.told(err); err != nil || v.over {
			return err
		}
	}
	return nil
}
