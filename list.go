package foundling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/google/uuid"
)

const (
	defaultPage = 100
	maxPage     = 1000
	// scanPage is how many events one call of List looks at for messages that have ended.
	scanPage = 10_000
)

// ListOptions say which messages List gives. The zero value works: all that are open or dead letters.
type ListOptions struct {
	Topic  string  // of this topic alone, unless empty
	States []State // in one of these alone; empty is queued, blocked, running and dead_lettered
	Key    string  // the message of Topic alone that has this key, unless empty
	Lock   string  // that take this lock alone, unless empty
	// From and Until bound the times at which their ids were made, unless zero: for those that a client minted, a moment before they were enqueued. From
	// is within, Until is not.
	From, Until time.Time
	Limit       int    // at most so many; 0 is 100, at most 1,000
	After       string // Page.Next of the page before, with otherwise the same options; empty is the first page
}

// Page is what List gives.
type Page struct {
	Messages []MessageInfo // without the bytes of payloads and results
	// Next is where the next page begins; empty where there is none. A page may be short, or empty, and have one all the same.
	Next string
	// Unread are the errors of messages that are not what was written. They are left out, and the others are given.
	Unread []error
}

// ListedStates are the states that empty ListOptions.States stand for.
func ListedStates() []State { return []State{Queued, Blocked, Running, DeadLettered} }

func (o ListOptions) validate() (ListOptions, error) {
	for _, name := range []struct{ what, value string }{{"topic", o.Topic}, {"key", o.Key}, {"lock", o.Lock}} {
		if name.value == "" {
			continue
		}
		if err := checkName(name.what, name.value); err != nil {
			return o, err
		}
	}
	for _, s := range o.States {
		if s != Staged && !slices.Contains(States(), s) {
			return o, fmt.Errorf("list options: %s is no state of a message, want one of %s: %w", s, stateWords(), ErrInvalid)
		}
	}
	switch {
	case o.Key != "" && o.Topic == "":
		return o, fmt.Errorf("list options: Key %q without a Topic: %w", o.Key, ErrInvalid)
	case o.Limit < 0 || o.Limit > maxPage:
		return o, fmt.Errorf("list options: Limit %d, want 0 to %d: %w", o.Limit, maxPage, ErrInvalid)
	case !o.From.IsZero() && !o.Until.IsZero() && !o.From.Before(o.Until):
		return o, fmt.Errorf("list options: From %s is not before Until %s: %w",
			o.From.Format(time.RFC3339), o.Until.Format(time.RFC3339), ErrInvalid)
	}
	if o.Limit == 0 {
		o.Limit = defaultPage
	}
	if len(o.States) == 0 {
		o.States = ListedStates()
	}
	return o, nil
}

// kept are those of the states whose messages have rows.
func (o ListOptions) kept() []State {
	return slices.DeleteFunc(slices.Clone(o.States), func(s State) bool { return s == Staged || hasEnded(s) })
}

// made reports whether an id is of the asked time.
func (o ListOptions) made(id ID) bool {
	at := idTime(id)
	return (o.From.IsZero() || !at.Before(o.From)) && (o.Until.IsZero() || at.Before(o.Until))
}

// place is where a page begins: among what is staged, behind one of it, among the messages that have rows, behind one of them, or in the log.
type place struct {
	inLog  bool
	staged int64 // 0 is none of it
	id     ID
	log    Cursor
}

const (
	stagedPlace = "staged:"
	rowsPlace   = "row:"
	logPlace    = "log:"
)

func (p place) String() string {
	switch {
	case p.inLog:
		return logPlace + string(p.log)
	case p.staged > 0:
		return stagedPlace + strconv.FormatInt(p.staged, 10)
	case p.id == ID{}:
		return rowsPlace
	}
	return rowsPlace + p.id.String()
}

func parsePlace(text string) (place, error) {
	if text == "" || text == rowsPlace {
		return place{}, nil
	}
	if after, ok := strings.CutPrefix(text, stagedPlace); ok {
		if n, err := strconv.ParseInt(after, 10, 64); err == nil && n > 0 {
			return place{staged: n}, nil
		}
	}
	if cursor, ok := strings.CutPrefix(text, logPlace); ok {
		return place{inLog: true, log: Cursor(cursor)}, nil
	}
	word, ok := strings.CutPrefix(text, rowsPlace)
	id, err := uuid.Parse(word)
	if !ok || err != nil {
		return place{}, fmt.Errorf("list options: After %.80q is not where a page begins: %w", text, ErrInvalid)
	}
	return place{id: id}, nil
}

// List gives messages by pages, with what their rows say: Get says more of one. Those that are open or dead letters come first, the newest id first,
// by reads of an index or, for Lock and States, of the messages of the topic. Those that have ended for good follow in the order in which they
// ended. They are found in the log, of which a call looks at 10,000 events at most, so that its page may be short and have a Next all the same.
// Those that are staged come before all others, in the order of staging, where they are asked for: a call looks at 10,000 of them at most.
//
// A page is read at one time, and the next at another: a message that moves meanwhile may stand on both or on none.
func (c *Client) List(ctx context.Context, o ListOptions) (Page, error) {
	o, err := o.validate()
	if err != nil {
		return Page{}, fmt.Errorf("list messages: %w", err)
	}
	at, err := parsePlace(o.After)
	if err != nil {
		return Page{}, fmt.Errorf("list messages: %w", err)
	}
	l := listing{client: c, opts: o, at: at}
	err = l.read(ctx)
	if errors.Is(err, store.ErrCursor) || errors.Is(err, store.ErrAhead) {
		err = fmt.Errorf("list options: After: %w: %w", err, ErrInvalid)
	}
	if err != nil {
		return Page{}, fmt.Errorf("list messages: %w", err)
	}
	return l.page, nil
}

// listing is a page in the making.
type listing struct {
	client *Client
	opts   ListOptions
	at     place
	page   Page
}

func (l *listing) read(ctx context.Context) error {
	ctx, cancel := l.client.within(ctx)
	defer cancel()
	if begins := l.opts.After == "" || l.at.staged > 0; begins && slices.Contains(l.opts.States, Staged) {
		if more, err := l.readStaged(ctx); more || err != nil {
			return err
		}
	}
	if !l.at.inLog {
		more, err := l.readRows(ctx)
		if more || err != nil {
			return err
		}
		l.at = place{inLog: true}
	}
	if !slices.ContainsFunc(l.opts.States, hasEnded) {
		return nil
	}
	if len(l.page.Messages) == l.opts.Limit {
		l.page.Next = l.at.String()
		return nil
	}
	return l.readLog(ctx)
}

// readStaged takes messages that are staged, and reports whether there are more than the page holds. Others come on the next page.
func (l *listing) readStaged(ctx context.Context) (more bool, err error) {
	stager, ok := store.As[store.Stager](l.client.store)
	if !ok {
		l.at.staged = 0
		return false, nil
	}
	seen := 0
	for kept, err := range stager.Staged(ctx, store.StagedFilter{After: l.at.staged, Limit: scanPage + 1}) {
		if err != nil && kept.Place == 0 {
			return false, err // it cannot be read any further
		}
		if seen++; seen > scanPage || len(l.page.Messages) == l.opts.Limit {
			l.page.Next = l.at.String()
			return true, nil
		}
		l.at.staged = kept.Place
		var info MessageInfo
		if err == nil {
			info, err = l.client.infoOf(kept)
		}
		switch {
		case err != nil:
			l.page.Unread = append(l.page.Unread, err)
		case l.opts.made(info.ID) && l.opts.fits(info):
			info.Payload.Bytes = nil // a page has none
			l.page.Messages = append(l.page.Messages, info)
		}
	}
	l.at.staged = 0
	if others := slices.ContainsFunc(l.opts.States, func(s State) bool { return s != Staged }); others && seen > 0 {
		l.page.Next = l.at.String()
		return true, nil
	}
	return false, nil
}

// fits reports whether a message is of the topic, the key and the lock that are asked for.
func (o ListOptions) fits(m MessageInfo) bool {
	return (o.Topic == "" || m.Topic == o.Topic) && (o.Key == "" || m.Key == o.Key) && (o.Lock == "" || m.Lock == o.Lock)
}

// readRows takes messages that have rows, and reports whether there are more than the page holds.
func (l *listing) readRows(ctx context.Context) (more bool, err error) {
	f := store.RowFilter{
		Kind: events.KindMessage, Topic: l.opts.Topic, States: l.opts.kept(), Lock: l.opts.Lock, After: l.behind(),
		Order: store.Falling, Limit: l.opts.Limit + 1,
	}
	if until := l.opts.Until; len(f.States) == 0 || !until.IsZero() && firstID(until) == (ID{}) { // no id is lower than that
		return false, nil
	}
	if l.opts.Key != "" {
		f.Key = store.Key{Topic: l.opts.Topic, Name: l.opts.Key}
	}
	seen := 0
	for row, err := range l.client.store.Rows(ctx, f) {
		entity := row.Entity
		if err != nil {
			if entity = corruptOf(err); entity == (events.Entity{}) {
				return false, err // it cannot be read any further
			}
		}
		if !l.opts.From.IsZero() && idTime(entity.ID).Before(l.opts.From) {
			return false, nil
		}
		if seen++; seen > l.opts.Limit {
			l.page.Next = l.at.String()
			return true, nil
		}
		l.at.id = entity.ID
		l.take(row, err)
	}
	return false, nil
}

// behind is the message behind which the rows of the page come; zero where they are the first.
func (l *listing) behind() events.Entity {
	id := l.at.id
	if !l.opts.Until.IsZero() {
		if first := firstID(l.opts.Until); id == (ID{}) || bytes.Compare(first[:], id[:]) < 0 {
			id = first
		}
	}
	if id == (ID{}) {
		return events.Entity{}
	}
	return events.MessageEntity(id)
}

// take puts a row on the page, or the error of reading it.
func (l *listing) take(row store.Row, err error) {
	if err == nil {
		m, wrong := calls.Message(row)
		if err = wrong; err == nil {
			l.page.Messages = append(l.page.Messages, newInfo(m))
			return
		}
	}
	l.page.Unread = append(l.page.Unread, err)
}

// readLog takes messages that have ended for good, from where the page stands in the log. What retention lets go of meanwhile is passed over: it
// is not there to be listed.
func (l *listing) readLog(ctx context.Context) error {
	for n := 0; ; n++ {
		err := l.scan(ctx)
		var pruned *store.PrunedError
		if n == maxOvertaken || !errors.As(err, &pruned) {
			return err
		}
		l.at.log = pruned.First
	}
}

func (l *listing) scan(ctx context.Context) error {
	seen := 0
	for r, err := range l.client.store.Read(ctx, l.at.log, store.Filter{Limit: scanPage}) {
		if err != nil {
			return err
		}
		seen++
		l.at.log = l.client.store.After(r)
		if err := l.look(ctx, r); err != nil {
			return err
		}
		if seen == scanPage || len(l.page.Messages) == l.opts.Limit {
			l.page.Next = l.at.String()
			return nil
		}
	}
	return nil
}

// look takes the message that an event has ended, where it is asked for.
func (l *listing) look(ctx context.Context, r events.Recorded) error {
	if r.Entity.Kind != events.KindMessage || r.Version == 0 || !hasEnded(r.To) || r.From == r.To {
		return nil
	}
	if !slices.Contains(l.opts.States, r.To) || !l.opts.made(r.Entity.ID) {
		return nil
	}
	told, err := l.client.chronicle(ctx, r.Entity.ID)
	if corruptOf(err) != (events.Entity{}) {
		l.page.Unread = append(l.page.Unread, err)
		return nil
	}
	if errors.Is(err, ErrNotFound) {
		return nil // retention was faster
	}
	if err != nil {
		return err
	}
	if l.opts.fits(told.info) {
		l.page.Messages = append(l.page.Messages, told.info)
	}
	return nil
}
