package projections

import (
	"slices"
	"strings"

	"github.com/foundling-go/foundling/events"
)

// Leader is who leads a leadership, as the log has it. Whether the lease still holds, it does not know.
type Leader struct {
	Name   string
	State  events.State // led or vacant
	Worker events.ID    // who leads, or led last
	Term   int
	Since  Mark // when he was elected, or since when nobody has led

	Elected  int  // how often somebody was
	Resigned int  // how often the lease was given back
	Lost     int  // how often it ended without that
	LostAt   Mark // when the last loss was noticed; zero where there was none
}

// Leaders adds up who leads. Its zero is the beginning of the log.
type Leaders struct {
	asOf    Mark
	leaders map[string]*Leader
}

// Apply takes the next event.
func (l *Leaders) Apply(r events.Recorded) {
	if !l.asOf.pass(r) || r.Entity.Kind != events.KindLeader || !r.Event.Type().Moves() {
		return
	}
	if l.leaders == nil {
		l.leaders = map[string]*Leader{}
	}
	k := l.leaders[r.Entity.Name]
	if k == nil {
		k = &Leader{Name: r.Entity.Name}
		l.leaders[k.Name] = k
	}
	if e, ok := r.Event.(*events.LeaderSnapshotted); ok {
		k.told(r, e)
		return
	}
	k.State, k.Since = r.To, markOf(r)
	switch e := r.Event.(type) {
	case *events.LeaderElected:
		k.Elected++
		k.Worker, k.Term = e.Worker, e.Term
	case *events.LeaderResigned:
		k.Resigned++
	case *events.LeaderLost:
		k.Lost++
		k.LostAt = markOf(r)
	}
}

// told sets what a snapshot tells. Since when it is so it does not say.
func (k *Leader) told(r events.Recorded, e *events.LeaderSnapshotted) {
	fields, ok := told[leaderFields](e.Snapshot)
	if !ok {
		return
	}
	k.Worker, k.Term = fields.Worker, fields.Term
	if k.Since.Position == 0 {
		k.State, k.Since = r.To, markOf(r)
	}
}

// AsOf is the last event that was applied.
func (l *Leaders) AsOf() Mark { return l.asOf }

// All is every leadership that somebody ever had, by name.
func (l *Leaders) All() []Leader {
	list := make([]Leader, 0, len(l.leaders))
	for _, k := range l.leaders {
		list = append(list, *k)
	}
	slices.SortFunc(list, func(a, b Leader) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Leader is one of them.
func (l *Leaders) Leader(name string) (Leader, bool) {
	k, ok := l.leaders[name]
	if !ok {
		return Leader{}, false
	}
	return *k, true
}
