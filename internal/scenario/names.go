package scenario

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
)

// ErrNotYet says that a step speaks of a message or worker whose number has not appeared in the story yet.
var ErrNotYet = errors.New("has not appeared yet")

// start is when every story begins.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// names shows ids by order of appearance and times since the start.
type names struct {
	ids      map[string]events.ID
	words    map[events.ID]string
	messages int
	workers  int
	sweeps   int
	text     *events.Names
}

func newNames() *names {
	n := &names{ids: map[string]events.ID{}, words: map[events.ID]string{}}
	n.text = &events.Names{Short: n.word, Clock: since}
	return n
}

// since is an instant as the stories show it.
func since(t time.Time) string {
	if t.Before(start) {
		return t.Sub(start).String()
	}
	return "+" + t.Sub(start).String()
}

// word is how an id is shown.
func (n *names) word(id events.ID) string {
	if word, ok := n.words[id]; ok {
		return word
	}
	return id.String()
}

// meet gives a name to whoever appears in the log for the first time.
func (n *names) meet(r events.Recorded) {
	n.meetSweep(r.Event)
	id := r.Entity.ID
	if _, known := n.words[id]; known {
		return
	}
	switch r.Entity.Kind {
	case events.KindMessage:
		n.messages++
		n.set(fmt.Sprintf("m%d", n.messages), id)
	case events.KindWorker:
		n.workers++
		n.set(fmt.Sprintf("w%d", n.workers), id)
	case events.KindSweep:
		n.sweep(id)
	}
}

// meetSweep gives a name to a sweep by what it did: its own event comes last.
func (n *names) meetSweep(e events.Event) {
	switch e := e.(type) {
	case *events.MessageOrphaned:
		n.sweep(e.Evidence.Sweep)
	case *events.LockOrphaned:
		n.sweep(e.Evidence.Sweep)
	case *events.WorkerLost:
		n.sweep(e.Evidence.Sweep)
	}
}

func (n *names) sweep(id events.ID) {
	if _, known := n.words[id]; known || id == (events.ID{}) {
		return
	}
	n.sweeps++
	n.set(fmt.Sprintf("s%d", n.sweeps), id)
}

func (n *names) set(word string, id events.ID) { n.ids[word], n.words[id] = id, word }

// numbered are the names that only appearance gives.
var numbered = regexp.MustCompile(`^[mws][0-9]+$`)

// id is who a name stands for. A name that nobody has is given to a made-up id, the same in every story.
func (n *names) id(word string) (events.ID, error) {
	if id, ok := n.ids[word]; ok {
		return id, nil
	}
	if numbered.MatchString(word) || word == "" {
		return events.ID{}, fmt.Errorf("%q: %w", word, ErrNotYet)
	}
	sum := sha256.Sum256([]byte(word))
	id := events.ID(sum[:16])
	ms := start.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[8] = 0x70|id[6]&0xf, 0x80|id[8]&0x3f
	n.set(word, id)
	return id, nil
}

// entity is what "mail", "m1", "w1" or "lock/boat" speaks of: a name that stands for no message or worker and says no kind is a topic's.
func (n *names) entity(word string, log []events.Recorded) events.Entity {
	if entity, err := events.ParseEntity(word); err == nil {
		return entity
	}
	id, ok := n.ids[word]
	if !ok {
		return events.TopicEntity(word)
	}
	for _, r := range log {
		if r.Entity.ID == id {
			return r.Entity
		}
	}
	return events.MessageEntity(id)
}

// plain replaces every known id in a text by its name.
func (n *names) plain(text string) string {
	for word, id := range n.ids {
		text = strings.ReplaceAll(text, id.String(), word)
	}
	return text
}
