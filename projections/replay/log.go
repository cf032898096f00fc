package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// event checks the next event of the log.
func (v *verifier) event(ctx context.Context, r events.Recorded) error {
	if v.report.Events++; v.report.Events%told == 0 && v.options.Progress != nil {
		v.options.Progress(v.report.Events)
	}
	v.place(r)
	v.commit(r)
	if v.broken[r.Entity] {
		return nil
	}
	if _, err := fsm.LifecycleOf(r.Entity.Kind); err != nil {
		v.breaks(r, nil, fmt.Sprintf("%s: %v", r.Entity, err))
		return nil
	}
	if done, err := v.beheaded(ctx, r); done || err != nil {
		return err
	}
	h, err := v.known(ctx, r.Entity, r.Position)
	if err != nil {
		return err
	}
	after, err := fsm.Apply(h.value, r)
	if err != nil {
		v.breaks(r, h.value, v.explain(r, h.value, err))
		return nil
	}
	if !r.Event.Type().Moves() {
		v.still(r, h)
		return nil
	}
	if version, _ := h.value.At(); version == 0 {
		if wrong, err := v.start(ctx, r); err != nil {
			return err
		} else if wrong != "" {
			v.breaks(r, h.value, fmt.Sprintf("%s: %s", r.Event.Type(), wrong))
			return nil
		}
		v.report.Entities++
	}
	wrong := v.law(r, h, after)
	if wrong == "" {
		wrong = v.key(h.value, after)
	}
	if wrong != "" {
		v.breaks(r, after, fmt.Sprintf("%s: %s", r.Event.Type(), wrong))
		return nil
	}
	v.keep(r, h, after)
	return nil
}

// start says what is wrong with an entity that begins with an event.
func (v *verifier) start(ctx context.Context, r events.Recorded) (wrong string, err error) {
	if _, told := v.without[r.Entity]; told {
		delete(v.without, r.Entity)
		return "", nil
	}
	if r.Version > 1 && r.Position > v.toldAt {
		return fmt.Sprintf("version %d is the first that is kept, and nothing has gone that it may have followed", r.Version), nil
	}
	if r.Entity.Kind.Rests() {
		return "", nil // it was looked for when it was woken
	}
	if again, err := v.again(ctx, r); err != nil || again {
		return "it begins again after it has ended", err
	}
	return "", nil
}

// place checks the event's position.
func (v *verifier) place(r events.Recorded) {
	if v.oldest == 0 {
		v.oldest = r.Position
	}
	if r.Position <= v.last {
		v.fault(r, "its position does not rise: the last one was %d", v.last)
	}
	v.last = max(v.last, r.Position)
}

// commit counts the events of the event's commit.
func (v *verifier) commit(r events.Recorded) {
	id := r.Commit.ID
	p, begun := v.commits[id]
	if !begun {
		p.left = r.Commit.Count
		v.report.Commits++
	}
	if p.left--; p.left <= 0 {
		delete(v.commits, id)
		return
	}
	p.last = Violation{r.Entity, r.Version, r.Position,
		fmt.Sprintf("commit %s holds fewer events than the %d that were written", id, r.Commit.Count)}
	v.commits[id] = p
}

// incomplete tells of the commits that have lost events.
func (v *verifier) incomplete() {
	list := slices.SortedFunc(maps.Values(v.commits), func(a, b partial) int { return cmp.Compare(a.last.Position, b.last.Position) })
	for _, p := range list {
		v.violate(p.last)
	}
	clear(v.commits)
}

// known is an entity as its events before a position have left it. One whose kind has no machine in this version is an error.
func (v *verifier) known(ctx context.Context, entity events.Entity, before int64) (*held, error) {
	if h := v.held[entity]; h != nil {
		return h, nil
	}
	if entity.Kind == events.KindLog {
		return v.log, nil
	}
	if _, headless := v.without[entity]; headless { // it tells its state
		value, err := fsm.NewValue(entity)
		return &held{value: value}, err
	}
	if entity.Kind.Rests() {
		return v.wake(ctx, entity, before)
	}
	if entity.Kind == events.KindSweep && v.ended.maybe(entity) {
		return v.swept(ctx, entity, before)
	}
	value, err := fsm.NewValue(entity)
	return &held{value: value}, err
}

// swept is a sweep as its first event has left it. Nobody keeps it, and one more may follow: it acted on proof, and was refused the rest.
func (v *verifier) swept(ctx context.Context, entity events.Entity, before int64) (*held, error) {
	value, err := fsm.NewValue(entity)
	if err != nil {
		return nil, err
	}
	for r, err := range v.store.Read(ctx, v.first, store.Filter{Entity: entity, Limit: 1}) {
		if err != nil && !v.damage(err) {
			return nil, err
		}
		if after, err := fsm.Apply(value, r); err == nil && r.Position < before {
			value = after
		}
	}
	return &held{value: value}, nil
}

// again reports whether an entity that begins with this event has begun before.
func (v *verifier) again(ctx context.Context, r events.Recorded) (bool, error) {
	if !v.ended.maybe(r.Entity) {
		return false, nil
	}
	for first, err := range v.store.Read(ctx, v.first, store.Filter{Entity: r.Entity, Limit: 1}) {
		if err != nil && !v.damage(err) {
			return false, err
		}
		return err == nil && first.Position < r.Position, nil
	}
	return false, nil
}

// keep remembers what is open after an event, who holds permits, and what counts towards its topic's limit.
func (v *verifier) keep(r events.Recorded, h *held, after fsm.Value) {
	before := h.value
	h.value, h.position = after, r.Position
	switch m := after.(type) {
	case *fsm.Message:
		v.counted[m.Topic] += slot(after) - slot(before)
		if claimed := before.(*fsm.Message); claimed.LockToken != 0 && m.LockToken == 0 {
			v.settles(r, claimed)
		}
	case *fsm.Lock:
		v.keepPermit(r, h)
	case *fsm.Log:
		if r.Position == v.toldAt {
			v.settleHeads()
		}
		return
	}
	if open(after) {
		v.held[r.Entity] = h
		return
	}
	delete(v.held, r.Entity)
	v.ended.add(r.Entity)
	if r.Entity.Kind.Rests() {
		v.resting.put(r.Entity, rest{version: r.Version, token: h.token, position: r.Position})
	}
}

// open reports whether more is to come of an entity. An orphaned message rests in no row; the next event of its commit says what became
// of it.
func open(v fsm.Value) bool {
	_, state := v.At()
	return v.Kept() || state == events.Orphaned
}

func slot(v fsm.Value) int {
	if m, ok := v.(*fsm.Message); ok && m.Counted {
		return 1
	}
	return 0
}

// explain is what is wrong with an event that cannot follow.
func (v *verifier) explain(r events.Recorded, before fsm.Value, err error) string {
	text := err.Error()
	var corrupt *events.Corrupt
	if errors.As(err, &corrupt) {
		text = corrupt.Detail
	}
	if version, _ := before.At(); version == 0 && r.Version > 1 {
		text += ": what it belongs to has ended, or its beginning is missing"
	}
	return text
}

// fault lists a violation at an event.
func (v *verifier) fault(r events.Recorded, format string, args ...any) {
	v.violate(Violation{r.Entity, r.Version, r.Position, fmt.Sprintf(format, args...)})
}

// breaks lists a violation at an event after which nothing more is believed of its entity, nor of a lock's permits, nor of the running count
// of a message's topic.
func (v *verifier) breaks(r events.Recorded, known fsm.Value, detail string) {
	v.fault(r, "%s", detail)
	topic := ""
	if m, ok := known.(*fsm.Message); ok {
		topic = m.Topic
	}
	if e, ok := r.Event.(*events.MessageEnqueued); ok {
		topic = e.Topic
	}
	v.disbelieve(r.Entity, topic)
}

// disbelieve believes nothing more of an entity; of a message the topic is given where it is known.
func (v *verifier) disbelieve(entity events.Entity, topic string) {
	v.broken[entity] = true
	if h := v.held[entity]; h != nil {
		v.letGo(h.value)
	}
	delete(v.held, entity)
	delete(v.without, entity)
	switch entity.Kind {
	case events.KindTopic:
		v.doubtful[entity.Name] = true
	case events.KindLock:
		v.distrust(entity)
	case events.KindMessage:
		v.doubtful[topic] = true
		v.allDoubtful = v.allDoubtful || topic == ""
	}
}
