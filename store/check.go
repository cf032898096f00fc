package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unicode/utf8"

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

// Check refuses changes that no engine may keep: over a bound, against what the decision saw, or without an event that tells of them.
// Engines call it before they keep any of them. That they stand on what the store has, an engine checks by itself: the versions that
// changes begin from are those that entities have, and topics whose counts move have a row.
func (c Changes) Check() error {
	total := 0
	for i := range c.Rows {
		if err := c.Rows[i].check(); err != nil {
			return err
		}
		total += len(c.Rows[i].Transitions)
	}
	if err := c.once(); err != nil {
		return err
	}
	for _, count := range c.Counts {
		if err := checkName("topic", count.Topic); err != nil {
			return err
		}
	}
	for _, change := range c.Keys {
		if err := errors.Join(checkName("topic", change.Key.Topic), checkName("key", change.Key.Name)); err != nil {
			return err
		}
	}
	if err := c.checkPermits(); err != nil {
		return err
	}
	if total > MaxEvents {
		return fmt.Errorf("commit of %d events, at most %d: %w: split it", total, MaxEvents, ErrTooLarge)
	}
	if total == 0 && !c.Empty() {
		return errors.New("commit without an event: nothing would tell of it, nor keep its id")
	}
	return nil
}

// checkPermits refuses permits that nobody could hold or name, and one that stands twice: tokens of a lock are never used twice.
func (c Changes) checkPermits() error {
	var seen map[PermitKey]struct{}
	for _, change := range c.Permits {
		p := &change.Permit
		if err := checkName("lock", p.Lock); err != nil {
			return err
		}
		if p.Token == 0 || p.Worker == (events.ID{}) {
			return fmt.Errorf("permit of lock %q: it has token %d and worker %s, want both", p.Lock, p.Token, p.Worker)
		}
		if _, twice := seen[p.PermitKey]; twice {
			return fmt.Errorf("permit %d of lock %q: it stands twice in one call", p.Token, p.Lock)
		}
		if seen == nil {
			seen = make(map[PermitKey]struct{}, len(c.Permits))
		}
		seen[p.PermitKey] = struct{}{}
	}
	return nil
}

// once refuses changes that have an entity twice: the first would be lost.
func (c Changes) once() error {
	if len(c.Rows) < 2 {
		return nil
	}
	seen := make(map[events.Entity]struct{}, len(c.Rows))
	for i := range c.Rows {
		entity := c.Rows[i].Row.Entity
		if _, twice := seen[entity]; twice {
			return fmt.Errorf("change of %s: it stands twice in one call", entity)
		}
		seen[entity] = struct{}{}
	}
	return nil
}

// check refuses one entity's part.
func (c *Change) check() error {
	row := &c.Row
	if row.Entity.Kind.Named() {
		if err := checkName(row.Entity.Kind.String(), row.Entity.Name); err != nil {
			return err
		}
	}
	if row.Entity.Kind == events.KindMessage {
		if err := checkName("topic", row.Topic); err != nil {
			return fmt.Errorf("change of %s: %w", row.Entity, err)
		}
		if row.Lock != "" {
			if err := checkName("lock", row.Lock); err != nil {
				return fmt.Errorf("change of %s: %w", row.Entity, err)
			}
		}
	}
	if c.Payload != nil && len(c.Payload.Bytes) > MaxPayload {
		return fmt.Errorf("payload of %s: %d bytes, at most %d: %w", row.Entity, len(c.Payload.Bytes), MaxPayload, ErrTooLarge)
	}
	if c.From == 0 && len(c.Transitions) == 0 {
		return fmt.Errorf("change of %s: it is new and has no event", row.Entity)
	}
	version := c.From
	for _, t := range c.Transitions {
		if t.Version == 0 {
			continue
		}
		if version++; t.Version != version {
			return fmt.Errorf("change of %s: version %d follows %d", row.Entity, t.Version, version-1)
		}
	}
	if version != row.Version {
		return fmt.Errorf("change of %s: its events lead to version %d, its row has %d", row.Entity, version, row.Version)
	}
	return nil
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: its name is empty", what)
	case len(name) > MaxName:
		return fmt.Errorf("%s %.20q…: %d bytes, at most %d: %w", what, name, len(name), MaxName, ErrTooLarge)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: want UTF-8", what, name)
	}
	return nil
}
