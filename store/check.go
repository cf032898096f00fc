package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/foundling-go/foundling/events"
)

// CheckID refuses a commit id that is not a UUIDv7, or older than the horizon at the store's time. Engines call it before they use
// one.
func CheckID(id CommitID, now time.Time) error {
	if id.Version() != 7 {
		return fmt.Errorf("commit id %s: want a UUID of version 7", id)
	}
	if minted := MintedAt(id); now.Sub(minted) > Horizon {
		return fmt.Errorf("commit id %s: minted %s, the store's time is %s, ids are kept for %s: %w",
			id, minted.Format(time.RFC3339), now.Format(time.RFC3339), Horizon, ErrExpired)
	}
	return nil
}

// MintedAt is the time that a UUIDv7 carries, in whole milliseconds.
func MintedAt(id events.ID) time.Time {
	ms := int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 | int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5])
	return time.UnixMilli(ms).UTC()
}

// Run runs the call's Fn for an engine. A Fn that panics refuses its call: it knows nothing of the other calls that share its commit, and
// must not take the process of whoever carries them with it.
func (c Call) Run(view View) (changes Changes, err error) {
	defer func() {
		if r := recover(); r != nil {
			changes, err = Changes{}, fmt.Errorf("command %q of commit %s panicked: %v\n%s", c.Command.Name, c.ID, r, debug.Stack())
		}
	}()
	return c.Fn(view)
}

// Check refuses changes that no engine may keep: over a bound, or against what the decision saw. Engines call it before they keep any
// of them.
func (c Changes) Check() error {
	total := 0
	for _, change := range c.Rows {
		total += len(change.Transitions)
		if err := errors.Join(checkName("topic", change.Row.Entity.Name), checkName("topic", change.Row.Topic)); err != nil {
			return err
		}
		if change.Payload != nil && len(change.Payload.Bytes) > MaxPayload {
			return fmt.Errorf("payload of %s: %d bytes, at most %d: %w", change.Row.Entity, len(change.Payload.Bytes), MaxPayload, ErrTooLarge)
		}
		version := change.From
		for _, t := range change.Transitions {
			if t.Version == 0 {
				continue
			}
			if version++; t.Version != version {
				return fmt.Errorf("change of %s: version %d follows %d", change.Row.Entity, t.Version, version-1)
			}
		}
		if version != change.Row.Version {
			return fmt.Errorf("change of %s: its events lead to version %d, its row has %d", change.Row.Entity, version, change.Row.Version)
		}
	}
	for _, change := range c.Keys {
		if err := errors.Join(checkName("topic", change.Key.Topic), checkName("key", change.Key.Name)); err != nil {
			return err
		}
	}
	if total > MaxEvents {
		return fmt.Errorf("commit of %d events, at most %d: %w: split it", total, MaxEvents, ErrTooLarge)
	}
	return nil
}

func checkName(what, name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("%s %.20q…: %d bytes, at most %d: %w", what, name, len(name), MaxName, ErrTooLarge)
	}
	return nil
}
