package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
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
// must not take the process of whoever carries them with it. So does one that prunes, or takes from what is staged, what the view did not offer.
func (c Call) Run(view View) (changes Changes, err error) {
	defer func() {
		if r := recover(); r != nil {
			changes, err = Changes{}, fmt.Errorf("command %q of commit %s panicked: %v\n%s", c.Command.Name, c.ID, r, debug.Stack())
		}
	}()
	if changes, err = c.Fn(view); err != nil {
		return Changes{}, err
	}
	if err := errors.Join(view.Pruning.allows(c.Need.Prune, changes), view.allowsUnstaging(changes)); err != nil {
		return Changes{}, err
	}
	return changes, nil
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
	if err := errors.Join(c.checkPermits(), c.checkPrune(), c.checkErase()); err != nil {
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

// checkPrune refuses a prune that no event tells of.
func (c Changes) checkPrune() error {
	if c.Prune == 0 {
		return nil
	}
	told := c.tells(events.LogEntity(), func(e events.Event) bool {
		pruned, ok := e.(*events.LogPruned)
		return ok && pruned.Through == c.Prune
	})
	if c.Prune < 0 || !told {
		return fmt.Errorf("prune through %d: no %s of the commit tells of it", c.Prune, events.TypeLogPruned)
	}
	return nil
}

// checkErase refuses to erase what no event tells of, and what the same commit writes.
func (c Changes) checkErase() error {
	if len(c.Erase) == 0 {
		return nil
	}
	erased := make(map[events.ID]bool, len(c.Erase))
	for _, erasure := range c.Erase {
		if erased[erasure.Message] {
			return fmt.Errorf("erasure of message %s: it stands twice in one call", erasure.Message)
		}
		erased[erasure.Message] = true
	}
	told := 0
	for i := range c.Rows {
		change := &c.Rows[i]
		if change.Row.Entity.Kind != events.KindMessage || !erased[change.Row.Entity.ID] {
			continue
		}
		if change.Payload != nil || change.Result != nil {
			return fmt.Errorf("erasure of %s: the same commit gives it contents", change.Row.Entity)
		}
		if slices.ContainsFunc(change.Transitions, func(t events.Transition) bool { return t.Event.Type() == events.TypeMessageErased }) {
			told++
		}
	}
	if told < len(erased) {
		return fmt.Errorf("erasure of %d messages, and %d of them have a %s in the commit", len(erased), told, events.TypeMessageErased)
	}
	return nil
}

// tells reports whether one of an entity's events says so.
func (c Changes) tells(entity events.Entity, so func(events.Event) bool) bool {
	for i := range c.Rows {
		if c.Rows[i].Row.Entity == entity {
			return slices.ContainsFunc(c.Rows[i].Transitions, func(t events.Transition) bool { return so(t.Event) })
		}
	}
	return false
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
		if err := checkName("topic", row.Topic); err != nil && !c.Gone { // of one that has ended and whose beginning was let go nobody knows it
			return fmt.Errorf("change of %s: %w", row.Entity, err)
		}
		if row.Lock != "" {
			if err := checkName("lock", row.Lock); err != nil {
				return fmt.Errorf("change of %s: %w", row.Entity, err)
			}
		}
	}
	if err := c.checkContents(); err != nil {
		return err
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

// checkContents refuses bytes that are over a bound, or that nobody would find again.
func (c *Change) checkContents() error {
	entity := c.Row.Entity
	for _, part := range []struct {
		what  string
		bytes *Payload
		most  int
	}{{"payload", c.Payload, MaxPayload}, {"result", c.Result, MaxResult}} {
		switch {
		case part.bytes == nil:
		case entity.Kind != events.KindMessage:
			return fmt.Errorf("%s of %s: want a message", part.what, entity)
		case len(c.Transitions) == 0:
			return fmt.Errorf("%s of %s: no event tells of it", part.what, entity)
		case len(part.bytes.Bytes) > part.most:
			return fmt.Errorf("%s of %s: %d bytes, at most %d: %w", part.what, entity, len(part.bytes.Bytes), part.most, ErrTooLarge)
		}
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
