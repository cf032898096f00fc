package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections/findings"
	"github.com/foundling-go/foundling/store"
)

// A batch is a store with three topics. Its lines are messages of the first. The batch itself is a message of the second, with the
// command to run as its payload: it is open as long as there is something left to do, and whoever works on the batch holds it. Reading
// an input is a message of the third: it is completed when the input has been read to its end.
const (
	topicLines = "lines"
	topicBatch = "batch"
	topicInput = "input"
)

// manyOrphanings is the orphan limit of the batch and its inputs, which are no work that could be what kills its process.
const manyOrphanings = 1 << 30

// batch is an open batch.
type batch struct {
	app      *app
	name     string
	location location
	made     bool // its name was made up
	store    store.Store
	client   *foundling.Client
	plan     *plan // nil: nothing says any more what to do
	reads    bool  // this process reads an input

	began   time.Time    // when this process opened it, by the store's clock
	created time.Time    // when the log began
	input   foundling.ID // the message of what this process reads
	lines   foundling.Topic[[]byte]
	batches foundling.Topic[plan]
	inputs  foundling.Topic[process]

	ending   chan struct{} // closed when this process lets go of the batch
	over     sync.Once
	complete bool // set before ending is closed: all is done
}

// openBatch opens or makes the batch that the flags name, and learns or records what it does.
func (a *app) openBatch(ctx context.Context, f *runFlags, args []string) (*batch, error) {
	b := &batch{app: a, ending: make(chan struct{}), reads: f.resume == "" && len(args) > 0}
	switch {
	case f.resume != "":
		b.name, a.batch = f.resume, f.resume
	case a.batch != "":
		b.name = a.batch
	case a.store == "":
		b.name, b.made = madeUpName(), true
		a.batch = b.name
	}
	var err error
	if b.location, err = a.location(); err != nil {
		return nil, err
	}
	if b.location.dsn == "" {
		if b.location.file, err = filepath.Abs(b.location.file); err != nil { // COMMAND may run elsewhere
			return nil, err
		}
		if a.store != "" {
			a.store = b.location.String()
		}
	}
	if b.name == "" {
		b.name = b.location.name()
	}
	a.removeOld(ctx, f.keep, b.location.file)
	open := a.openOrMake
	if !b.reads {
		open = a.openToWork
	}
	if b.store, err = open(ctx); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx, f, args); err != nil {
		return nil, errors.Join(err, b.store.Close())
	}
	return b, nil
}

// prepare records what the batch does, or learns it.
func (b *batch) prepare(ctx context.Context, f *runFlags, args []string) error {
	var err error
	// That a line failed is said by its COMMAND and at the end; what the library warns of otherwise would only be noise between them.
	logger := b.app.loggerTo(b.app.stderr, slog.LevelError)
	if b.client, err = foundling.NewClient(b.store, foundling.ClientOptions{Logger: logger, Actor: thisProcess().actor()}); err != nil {
		return err
	}
	own := foundling.TopicOptions{OrphanMaxAttempts: manyOrphanings, Fence: foundling.FenceWarns}
	b.batches = foundling.NewTopic[plan](topicBatch, own)
	b.inputs = foundling.NewTopic[process](topicInput, own)
	if b.began, err = b.store.Now(ctx); err != nil {
		return err
	}
	if err := b.settlePlan(ctx, f, args); err != nil || b.plan == nil {
		return err
	}
	b.lines = foundling.NewTopic[[]byte](topicLines, foundling.TopicOptions{
		Limit: f.limit, MaxAttempts: b.plan.Attempts, Timeout: b.plan.Timeout,
		BackoffBase: 500 * time.Millisecond, BackoffMax: time.Minute, // the first delay is twice the base
		Fence: foundling.FenceWarns, // a run that was suspended, or whose disk was busy for a while, must not begin hours of work again
	})
	if f.given("limit") {
		settings := foundling.TopicSettings{Limit: f.limit, Reason: "foundling run --limit"}
		if err := b.client.ConfigureTopic(ctx, topicLines, settings); err != nil {
			return err
		}
	}
	return b.learnCreated(ctx)
}

// settlePlan learns what the batch does, and records it where the command line says so.
func (b *batch) settlePlan(ctx context.Context, f *runFlags, args []string) error {
	stored, id, err := b.storedPlan(ctx)
	if err != nil {
		return err
	}
	if stored == nil && !b.reads {
		if err := b.wasRead(ctx); err != nil {
			return err
		}
	}
	if b.plan, err = f.plan(stored, args); err != nil || b.plan == nil {
		return err
	}
	if stored != nil && !stored.equal(b.plan) {
		if err := b.replace(ctx, stored, id); err != nil {
			return err
		}
	}
	return b.record(ctx)
}

// wasRead is an error where the batch never had an input: whoever began it was killed before it was recorded.
func (b *batch) wasRead(ctx context.Context) error {
	for r, err := range logOf(ctx, b.store, store.Filter{Types: []events.Type{events.TypeMessageEnqueued}}) {
		if err != nil {
			return err
		}
		if e, ok := r.Event.(*events.MessageEnqueued); ok && e.Topic == topicBatch {
			return nil
		}
	}
	return notFound("batch %s: no input was read yet: give it again: foundling run %s -- COMMAND", b.name, b.flag())
}

// storedPlan is what the open message of the batch says; nil where the batch is new or done.
func (b *batch) storedPlan(ctx context.Context) (*plan, foundling.ID, error) {
	for row, err := range b.store.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: topicBatch, Payloads: true}) {
		switch {
		case err != nil:
			return nil, foundling.ID{}, err
		case row.State == events.DeadLettered || row.Payload == nil:
			continue
		}
		p := &plan{}
		if err := json.Unmarshal(row.Payload.Bytes, p); err != nil {
			return nil, foundling.ID{}, fmt.Errorf("batch %s: message %s: %w", b.name, row.Entity.ID, err)
		}
		return p, row.Entity.ID, nil
	}
	return nil, foundling.ID{}, nil
}

// replace ends the message with what the batch did so far. A process that works on it would go on with the old COMMAND, so while there
// is one, only what is not COMMAND's can be replaced.
func (b *batch) replace(ctx context.Context, stored *plan, id foundling.ID) error {
	if !stored.runs(b.plan) {
		by, busy, err := b.livePeer(ctx)
		if err != nil {
			return err
		}
		if busy {
			return &exitError{exitRefused, fmt.Errorf("batch %s: process %d works on it with another COMMAND or in another directory: "+
				"wait until it has ended, or choose another --batch", b.name, by.PID)}
		}
	}
	if !stored.keeps(b.plan) {
		b.app.console().say("%s: lines it knows keep --attempts %d --timeout %s", b.name, stored.Attempts, stored.Timeout)
	}
	return b.cancel(ctx, "run again with another command or other flags", id)
}

// cancel ends one of the batch's own messages, unless it has ended already.
func (b *batch) cancel(ctx context.Context, reason string, id foundling.ID) error {
	err := b.client.Cancel(ctx, reason, id)
	if errors.As(err, new(*foundling.Refusal)) { // it ended meanwhile
		return nil
	}
	return err
}

// record makes the message of the batch, unless there is one, and that of the input that is about to be read.
func (b *batch) record(ctx context.Context) error {
	drafts := []foundling.Draft{b.batches.Draft(*b.plan, foundling.EnqueueOptions{Key: topicBatch})}
	if b.reads {
		drafts = append(drafts, b.inputs.Draft(thisProcess(), foundling.EnqueueOptions{}))
	}
	list, err := b.client.EnqueueMany(ctx, drafts...)
	if err == nil && b.reads {
		b.input = list[1].ID
	}
	return err
}

// learnCreated finds out when the log began: the ids of lines carry that time, so that they are the same whenever the input is read.
func (b *batch) learnCreated(ctx context.Context) error {
	first, err := store.Oldest(ctx, b.store)
	if err != nil {
		return err
	}
	if first != "" && b.reads {
		return &exitError{exitRefused, fmt.Errorf("batch %s: the beginning of its log was let go, so that lines which it has had cannot be told "+
			"from new ones: go on without an input (%s), or begin another batch", b.name, b.resumeWith())}
	}
	for r, err := range logOf(ctx, b.store, store.Filter{Limit: 1}) {
		if err != nil {
			return err
		}
		b.created = r.At()
	}
	return nil
}

// hold is the handler of the batch's message: whoever works on the batch holds it, until all is done or this process lets go.
func (b *batch) hold(ctx context.Context, _ foundling.Message[plan]) error {
	select {
	case <-b.ending:
	case <-ctx.Done():
	}
	if b.complete {
		return nil
	}
	return foundling.Snooze(0)
}

// finish lets go of the batch's message: it is completed.
func (b *batch) finish() { b.over.Do(func() { b.complete = true; close(b.ending) }) }

// giveBack lets go of the batch's message: it is left to whoever goes on.
func (b *batch) giveBack() { b.over.Do(func() { close(b.ending) }) }

// resumeWith is the command that goes on with the batch.
func (b *batch) resumeWith() string {
	if b.app.batch != "" {
		return "foundling run --resume " + b.name
	}
	return "foundling run " + b.flag()
}

// flag is how other commands name the batch.
func (b *batch) flag() string {
	if b.app.batch != "" {
		return "--batch " + b.name
	}
	return "--store " + findings.ShellWord(b.location.flag())
}

var (
	adjectives = strings.Fields("amber brave brisk calm clever crisp eager early fair fleet gentle glad keen kind late lively loyal lucky mellow merry mild neat noble patient plain proud quick quiet ready rapid sharp silent sober solid steady still stout swift tidy true vivid warm wise")
	animals    = strings.Fields("badger beaver bison crane curlew deer dove eagle egret falcon ferret finch fox gannet goose hare hawk heron ibex jay kestrel kite lark lynx marten mole moose newt otter owl plover puffin quail raven robin seal shrew siskin sparrow stoat stork swan tern thrush vole wren")
)

// madeUpName is a name for a batch that was given none.
func madeUpName() string {
	pick := func(n int) int {
		i, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
		if err != nil {
			return int(time.Now().UnixNano() % int64(n)) // a name need not be secret
		}
		return int(i.Int64())
	}
	return fmt.Sprintf("%s-%s-%02d", adjectives[pick(len(adjectives))], animals[pick(len(animals))], pick(100))
}
