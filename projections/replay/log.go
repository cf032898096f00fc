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
	before, err := v.value(r.Entity)
	if err != nil {
		v.breaks(r, nil, err.Error())
		return nil
	}
	after, err := fsm.Apply(before, r)
	if err != nil {
		v.breaks(r, before, v.explain(r, before, err))
		return nil
	}
	if !r.Event.Type().Moves() {
		v.refused(r)
		return nil
	}
	if version, _ := before.At(); version == 0 {
		if again, err := v.again(ctx, r); err != nil {
			return err
		} else if again {
			v.breaks(r, before, fmt.Sprintf("%s: it begins again after it has ended", r.Event.Type()))
			return nil
		}
		v.report.Entities++
	}
	wrong := v.law(r, before, after)
	if wrong == "" {
		wrong = v.key(before, after)
	}
	if wrong != "" {
		v.breaks(r, after, fmt.Sprintf("%s: %s", r.Event.Type(), wrong))
		return nil
	}
	v.keep(r, before, after)
	return nil
}

// place checks the event's position.
func (v *verifier) place(r events.Recorded) {
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

// value is the entity as the log has left it.
func (v *verifier) value(entity events.Entity) (fsm.Value, error) {
	if h := v.held[entity]; h != nil {
		return h.value, nil
	}
	return fsm.NewValue(entity)
}

// again reports whether an entity that begins with this event has begun before.
func (v *verifier) again(ctx context.Context, r events.Recorded) (bool, error) {
	if !v.ended.maybe(r.Entity) {
		return false, nil
	}
	for first, err := range v.store.Read(ctx, "", store.Filter{Entity: r.Entity, Limit: 1}) {
		if err != nil && !v.damage(err) {
			return false, err
		}
		return err == nil && first.Position < r.Position, nil
	}
	return false, nil
}

// keep remembers what is open after an event, and what counts towards its topic's limit.
func (v *verifier) keep(r events.Recorded, before, after fsm.Value) {
	entity := after.Entity()
	if open(after) {
		if h := v.held[entity]; h != nil {
			h.value, h.position = after, r.Position
		} else {
			v.held[entity] = &held{value: after, position: r.Position}
		}
	} else {
		delete(v.held, entity)
		v.ended.add(entity)
	}
	if m, ok := after.(*fsm.Message); ok {
		v.counted[m.Topic] += slot(after) - slot(before)
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

// breaks lists a violation at an event after which nothing more is believed of its entity, nor of the running count of its topic.
func (v *verifier) breaks(r events.Recorded, known fsm.Value, detail string) {
	v.fault(r, "%s", detail)
	v.broken[r.Entity] = true
	if h := v.held[r.Entity]; h != nil {
		v.free(h.value)
	}
	delete(v.held, r.Entity)
	switch r.Entity.Kind {
	case events.KindTopic:
		v.doubtful[r.Entity.Name] = true
	case events.KindMessage:
		topic := ""
		if m, ok := known.(*fsm.Message); ok {
			topic = m.Topic
		}
		if e, ok := r.Event.(*events.MessageEnqueued); ok {
			topic = e.Topic
		}
		v.doubtful[topic] = true
		v.allDoubtful = v.allDoubtful || topic == ""
	}
}
