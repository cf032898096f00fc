package foundling

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// erasePage is how many messages one commit erases: each is read with its history.
const erasePage = 100

// Erase lets the payloads and results of messages go for good, with the salts that the log's commitments to them were made with: nobody can show, or
// find out by trying, what they were. What else the log says of the messages stays; who erased them and why is an event of its own. Only what
// has ended for good is erased: messages that are open, or dead letters, are refused (cancel them first), joined into the error; the others are
// done. One that was erased before is left as it is. It blocks for a commit for each hundred messages.
//
// What a handler got, what other systems were given and what backups hold is not Foundling's to erase.
func (c *Client) Erase(ctx context.Context, reason string, ids ...ID) error {
	if err := c.unstageThese(ctx, ids...); err != nil {
		return fmt.Errorf("erase: %w", err)
	}
	var all []*fsm.Refusal
	for page := range slices.Chunk(ids, erasePage) {
		command := fsm.Erase{IDs: page, By: c.opts.Actor, Detail: errorText(reason)}
		var refusals *[]*fsm.Refusal
		_, err := c.decide(ctx, func(o calls.Origin) (call store.Call) {
			call, refusals = calls.Erase(o, command)
			return call
		})
		if err != nil {
			return errors.Join(fmt.Errorf("erase: %w", err), joinRefusals(all))
		}
		all = append(all, *refusals...)
	}
	return joinRefusals(all)
}
