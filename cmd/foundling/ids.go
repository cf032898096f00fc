package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
)

const (
	// fewestDigits is the shortest tail that is shown.
	fewestDigits = 3
	// spread is how many times more tails there are than messages in the store, so that a tail that was read off one output can be given
	// to the next command.
	spread = 64
	// maxCandidates is how many messages an ambiguous tail names in its error.
	maxCandidates = 5
)

// shortIDs shows ids by their ends, all equally long. (Heads of UUIDv7 are alike for a minute.)
type shortIDs struct{ digits int }

// shorten gives the shortest ids that tell the shown ones apart, and that are likely to be unique in a store of so many messages.
func shorten(messages int64, shown ...events.ID) *shortIDs {
	digits := fewestDigits
	for tails := int64(1) << (4 * fewestDigits); tails/spread < messages && digits < 15; tails <<= 4 {
		digits++
	}
	for ; digits < 2*len(events.ID{}); digits++ {
		seen := make(map[string]events.ID, len(shown))
		same := slices.ContainsFunc(shown, func(id events.ID) bool {
			tail := tailOf(id, digits)
			other, taken := seen[tail]
			seen[tail] = id
			return taken && other != id
		})
		if !same {
			break
		}
	}
	return &shortIDs{digits}
}

// text is how an id is shown.
func (s *shortIDs) text(id events.ID) string {
	if id == (events.ID{}) {
		return unknown
	}
	return "…" + tailOf(id, s.digits)
}

func tailOf(id events.ID, digits int) string {
	all := hex.EncodeToString(id[:])
	return all[len(all)-digits:]
}

// tail is the end of an id: lower case hex digits. All 32 are a whole id.
type tail string

// parseTail reads an id or its end, as outputs show it: with or without the sign for what was left out.
func parseTail(what, word string) (tail, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(word, "…"), "...")
	digits = strings.ToLower(strings.ReplaceAll(digits, "-", ""))
	odd := func(r rune) bool { return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'f') }
	if digits == "" || len(digits) > 32 || strings.ContainsFunc(digits, odd) {
		return "", usage("%s %q: want an id or the end of one, 1 to 32 hex digits", what, word)
	}
	return tail(digits), nil
}

// resolve finds the messages that the words name, whole ids or ends that no other message of the store has.
func resolve(ctx context.Context, s store.Store, words ...string) ([]events.ID, error) {
	tails := make([]tail, len(words))
	whole := true
	for i, word := range words {
		t, err := parseTail("message", word)
		if err != nil {
			return nil, err
		}
		tails[i] = t
		whole = whole && len(t) == 32
	}
	if whole {
		return wholeIDs(ctx, s, tails)
	}
	found := make([]candidates, len(tails))
	for i := range found {
		found[i].what = "message"
	}
	for kept, err := range stagedOf(ctx, s, store.StagedFilter{}) { // first: what leaves that meanwhile is in the log
		if err != nil {
			return nil, err
		}
		addTo(found, tails, kept.Message)
	}
	for r, err := range logOf(ctx, s, store.Filter{Types: tellingTypes()}) {
		if err != nil {
			return nil, err
		}
		addTo(found, tails, r.Entity.ID)
	}
	ids := make([]events.ID, len(tails))
	for i, t := range tails {
		id, err := found[i].only(t)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// addTo adds a message to the candidates of the tails that it has.
func addTo(found []candidates, tails []tail, id events.ID) {
	all := hex.EncodeToString(id[:])
	for i, t := range tails {
		if strings.HasSuffix(all, string(t)) {
			found[i].add(id)
		}
	}
}

// stagedOf is what is staged, of a store that stages anything.
func stagedOf(ctx context.Context, s store.Store, f store.StagedFilter) iter.Seq2[store.Staged, error] {
	if stager, ok := store.As[store.Stager](s); ok {
		return stager.Staged(ctx, f)
	}
	return func(func(store.Staged, error) bool) {}
}

// tellingTypes are the types of events of which every message that the log still knows has one: where its beginning was let go it was told once
// more while it was open, and has ended since where that was let go too.
func tellingTypes() []events.Type {
	return []events.Type{
		events.TypeMessageEnqueued, events.TypeMessageSnapshotted, events.TypeMessageCompleted, events.TypeMessageCancelled,
		events.TypeMessageDiscarded,
	}
}

// wholeIDs is the messages with these ids, without a look at others.
func wholeIDs(ctx context.Context, s store.Store, tails []tail) ([]events.ID, error) {
	ids := make([]events.ID, len(tails))
	for i, t := range tails {
		id, err := uuid.Parse(string(t))
		if err != nil {
			return nil, usage("message %s: %w", t, err)
		}
		known := false
		for _, err := range stagedOf(ctx, s, store.StagedFilter{Messages: []events.ID{id}, Limit: 1}) { // first, as above
			if err != nil {
				return nil, err
			}
			known = true
		}
		for _, err := range logOf(ctx, s, store.Filter{Entity: events.MessageEntity(id), Limit: 1}) {
			if err != nil {
				return nil, err
			}
			known = true
		}
		if !known {
			return nil, notFound("no message %s in this store", id)
		}
		ids[i] = id
	}
	return ids, nil
}

// candidates is the messages, or whatever else has an id, that a tail may mean.
type candidates struct {
	what  string
	count int
	first []events.ID // at most maxCandidates
	seen  map[events.ID]bool
}

// add takes one that the tail may mean, unless it was taken before.
func (c *candidates) add(id events.ID) {
	if c.seen[id] {
		return
	}
	if c.seen == nil {
		c.seen = map[events.ID]bool{}
	}
	c.seen[id] = true
	c.count++
	if len(c.first) < maxCandidates {
		c.first = append(c.first, id)
	}
}

// only is the one that a tail names.
func (c *candidates) only(t tail) (events.ID, error) {
	switch c.count {
	case 0:
		return events.ID{}, notFound("no %s of this store ends in %s", c.what, t)
	case 1:
		return c.first[0], nil
	}
	list := make([]string, len(c.first))
	for i, id := range c.first {
		list[i] = id.String()
	}
	more := ""
	if n := c.count - len(c.first); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return events.ID{}, usage("%d %ss end in %s: %s%s", c.count, c.what, t, strings.Join(list, ", "), more)
}
