package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// jsonEvent is an event as JSON has it.
type jsonEvent struct {
	Position string          `json:"position"`
	Cursor   string          `json:"cursor"` // behind it: --after goes on with the next one
	Time     *time.Time      `json:"time"`
	Type     string          `json:"type"`
	Subject  jsonSubject     `json:"subject"`
	Version  int             `json:"version"` // of the subject; 0 where the event moves nothing
	From     *string         `json:"from"`    // null is before everything
	To       *string         `json:"to"`
	Commit   string          `json:"commit"`
	Command  string          `json:"command"` // what was asked of the store
	Actor    *string         `json:"actor"`   // by whom
	Params   json.RawMessage `json:"params"`
	Fields   json.RawMessage `json:"fields"` // as they are stored: times in microseconds, lengths of time in nanoseconds
}

func (p *eventPrinter) json(r events.Recorded) jsonEvent {
	j := jsonEvent{
		Position: whole(r.Position), Cursor: string(p.store.After(r)), Time: instant(r.At()), Type: r.Event.Type().String(), Subject: subjectOf(r.Entity),
		Version: r.Version, From: stateOrNull(r.From), To: stateOrNull(r.To), Commit: r.Commit.ID.String(), Command: r.Commit.Command.Name,
		Actor: orNull(r.Commit.Command.Actor), Params: json.RawMessage("null"), Fields: events.AppendFields(nil, r.Event),
	}
	if params := r.Commit.Command.Params; params != nil {
		if j.Params = p.redactor.content(params); !isJSON(j.Params) { // they were hidden whole
			j.Params = quotedJSON(string(j.Params))
		}
	}
	return j
}

// eventPrinter prints the events that its options ask for.
type eventPrinter struct {
	*app
	store   store.Store
	opts    eventsOptions
	members map[events.Entity]bool // the topic and its messages
	printed int
	next    store.Cursor // behind the last event that was looked at
	last    events.Recorded

	names *events.Names
	lines *bufio.Writer    // for people
	feed  *feed[jsonEvent] // for programs
}

func newEventPrinter(a *app, s store.Store, o eventsOptions, next store.Cursor) (*eventPrinter, error) {
	p := &eventPrinter{app: a, store: s, opts: o, next: next, names: a.inFull(namesFor(&shortIDs{streamDigits}))}
	if a.forPeople() {
		p.lines = bufio.NewWriter(a.stdout)
		return p, nil
	}
	var err error
	p.feed, err = newFeed[jsonEvent](a, "foundling.events/v1")
	return p, err
}

// read prints the log behind next up to its end. It looks at every event itself, but for those of one message, which the store finds by an
// index: so next is where it has been, and not where it last found something.
func (p *eventPrinter) read(ctx context.Context) error {
	if err := p.learnMembers(ctx); err != nil {
		return err
	}
	for r, err := range p.store.Read(ctx, p.next, store.Filter{Entity: p.opts.entity}) {
		if err != nil {
			return err
		}
		if p.wants(r) {
			if err := p.print(r); err != nil {
				return err
			}
		}
		p.next, p.last = p.store.After(r), r
		if p.enough() {
			break
		}
	}
	return nil
}

// enough reports whether as much was printed as was asked for, or as anybody hears.
func (p *eventPrinter) enough() bool {
	return p.rows > 0 && p.printed == p.rows || p.unheard()
}

func (p *eventPrinter) print(r events.Recorded) error {
	p.printed++
	p.last = r
	if p.feed != nil {
		return p.feed.add(p.json(r))
	}
	if _, err := fmt.Fprintln(p.lines, p.names.Line(r)); err != nil {
		return &exitError{exitStore, err}
	}
	return nil
}

func (p *eventPrinter) flush() error {
	if p.feed != nil {
		return p.feed.flush()
	}
	if err := p.lines.Flush(); err != nil {
		return &exitError{exitStore, err}
	}
	return nil
}

// end prints what comes behind the events.
func (p *eventPrinter) end(cut bool) error {
	if p.feed == nil {
		return p.flush()
	}
	e := end{AsOf: asOf{}, Truncated: cut || p.rows > 0 && p.printed == p.rows, Next: orNull(string(p.next))}
	if p.last.Commit != nil {
		at := whole(p.last.Position)
		e.AsOf = asOf{Position: &at, Time: instant(p.last.At())}
	}
	return p.feed.end(e)
}

// learnMembers finds the messages of the topic that were enqueued before the cursor. Their later events do not name it.
func (p *eventPrinter) learnMembers(ctx context.Context) error {
	if p.opts.topic == "" {
		return nil
	}
	p.members = map[events.Entity]bool{events.TopicEntity(p.opts.topic): true}
	if p.opts.after == "" {
		return nil // they are met on the way
	}
	for r, err := range logOf(ctx, p.store, store.Filter{Types: []events.Type{events.TypeMessageEnqueued, events.TypeMessageSnapshotted}}) {
		if err != nil {
			return err
		}
		p.meet(r)
	}
	return nil
}

// meet remembers a message of the topic.
func (p *eventPrinter) meet(r events.Recorded) {
	topic := ""
	switch e := r.Event.(type) {
	case *events.MessageEnqueued:
		topic = e.Topic
	case *events.MessageSnapshotted:
		topic = toldTopic(e)
	}
	if topic != "" && topic == p.opts.topic {
		p.members[r.Entity] = true
	}
}

// toldTopic is the topic of a message as a snapshot tells it.
func toldTopic(e *events.MessageSnapshotted) string {
	var told struct {
		Topic string `json:"topic"`
	}
	_ = json.Unmarshal(e.State, &told) // what cannot be read tells of no topic
	return told.Topic
}

func (p *eventPrinter) wants(r events.Recorded) bool {
	if p.members != nil {
		p.meet(r)
		if !p.members[r.Entity] {
			return false
		}
	}
	return len(p.opts.types) == 0 || slices.Contains(p.opts.types, r.Event.Type())
}
