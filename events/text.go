package events

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Names is how a text shows ids and times. Its zero shows both in full.
type Names struct {
	Short func(ID) string        // an id; nil is the whole id
	Clock func(time.Time) string // an instant; nil is RFC 3339 in UTC
}

// ID is how the text shows an id.
func (n *Names) ID(id ID) string {
	if n == nil || n.Short == nil {
		return id.String()
	}
	return n.Short(id)
}

// within is a canonical object with the ids in it as the text shows them.
func (n *Names) within(object string) string {
	if n == nil || n.Short == nil {
		return object
	}
	const wide = 36 // of an id's text
	var b strings.Builder
	for at := 0; at < len(object); at++ {
		if end := at + wide + 1; object[at] == '"' && end < len(object) && object[end] == '"' {
			if id, err := uuid.Parse(object[at+1 : end]); err == nil {
				b.WriteString("\"" + n.Short(id) + "\"")
				at = end
				continue
			}
		}
		b.WriteByte(object[at])
	}
	return b.String()
}

func (n *Names) time(t time.Time) string {
	if n == nil || n.Clock == nil {
		return t.UTC().Format(time.RFC3339Nano)
	}
	return n.Clock(t)
}

// Time is how the text shows an instant.
func (n *Names) Time(t time.Time) string { return n.time(t) }

// Entity is how the text shows an entity: its kind with its id or name.
func (n *Names) Entity(e Entity) string {
	if e.Kind.Named() {
		return e.Kind.String() + " " + quoteIfNeeded(e.Name)
	}
	return e.Kind.String() + " " + n.ID(e.ID)
}

// Line is the one text form of a recorded event: the scenarios, the command line and a failing random test all print it.
//
//	41 +1.5s message m1 v2 queued→running message.claimed topic=mail worker=w1 token=2 attempt=1
//
// It is a single line without control characters, whatever the event holds.
func (n *Names) Line(r Recorded) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s ", r.Position, n.time(r.At()), n.Entity(r.Entity))
	if r.Version > 0 {
		fmt.Fprintf(&b, "v%d %s→%s ", r.Version, r.From, r.To)
	} else {
		fmt.Fprintf(&b, "%s ", r.To)
	}
	b.WriteString(r.Event.Type().String())
	b.WriteString(n.Fields(r.Event))
	return b.String()
}

// Fields prints the fields of v that are not zero, each as " name=value".
func (n *Names) Fields(v Visitor) string {
	f := Fields{walk: printing, names: n}
	v.VisitFields(&f)
	return string(f.buf)
}
