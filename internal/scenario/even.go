package scenario

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/foundling-go/foundling/events"
)

// even shows the numbers that an engine may choose as if there were no gaps between them, so that a story is told of every engine in the same words:
// a position is the ordinal of its event, and the token of a permit is that of its commit's first event, and one more for each permit that the commit
// gave before it. An engine without gaps chooses those.
type even struct {
	ordinals map[int64]int64               // by position
	tokens   map[events.Token]events.Token // of permits, as they are shown
	permits  map[events.Token]events.Token // by what is shown
	commit   events.ID                     // whose events are met
	begin    events.Token                  // the ordinal of its first event
	first    events.Token                  // the token of its first permit; 0 while it gave none
}

func newEven() *even {
	return &even{ordinals: map[int64]int64{}, tokens: map[events.Token]events.Token{}, permits: map[events.Token]events.Token{}}
}

// meet takes in an event that has its ordinal, and what it stands at in the store.
func (e *even) meet(r events.Recorded, position int64) {
	e.ordinals[position] = r.Position
	if r.Commit.ID != e.commit {
		e.commit, e.begin, e.first = r.Commit.ID, events.Token(r.Position), 0
	}
	acquired, ok := r.Event.(*events.LockAcquired)
	if !ok {
		return
	}
	if e.first == 0 {
		e.first = acquired.Token
	}
	shown := e.begin + acquired.Token - e.first
	e.tokens[acquired.Token], e.permits[shown] = shown, acquired.Token
}

// permit is the token of a permit that a story calls by what it was shown.
func (e *even) permit(shown events.Token) events.Token {
	if token, ok := e.permits[shown]; ok {
		return token
	}
	return shown
}

// chosen are the numbers in a text, and what says that one is a position.
var chosen = regexp.MustCompile(`(through"?[=:])?\b([1-9][0-9]*)\b`)

// text is a text with the numbers of the store as they are shown.
func (e *even) text(text string) string {
	return chosen.ReplaceAllStringFunc(text, func(found string) string {
		part := chosen.FindStringSubmatch(found)
		n, err := strconv.ParseInt(part[2], 10, 64)
		if err != nil {
			return found
		}
		if part[1] != "" {
			if ordinal, ok := e.ordinals[n]; ok {
				return part[1] + strconv.FormatInt(ordinal, 10)
			}
			return found
		}
		if token, ok := e.tokens[events.Token(n)]; ok {
			return strconv.FormatInt(int64(token), 10)
		}
		return found
	})
}

// Stored is events of whole commits, each with what it shares with the others of its commit, as they are stored, but for the numbers that an engine
// may choose: those are as they are shown. An error names an event that is not stored as it is encoded.
func (w *World) Stored(list []events.Recorded) (texts []string, err error) {
	for begin := 0; begin < len(list); {
		commit := list[begin].Commit
		end := min(begin+commit.Count, len(list))
		stored := make([]events.Stored, 0, end-begin)
		for _, r := range list[begin:end] {
			stored = append(stored, events.Encode(r.Entity, r.Transition))
		}
		sealed := events.Seal(*commit, stored)
		if sealed.Checksum != commit.Checksum {
			return nil, fmt.Errorf("%s: its commit has checksum %08x, its events and what they share give %08x",
				w.names.text.Line(list[begin]), commit.Checksum, sealed.Checksum)
		}
		for _, s := range stored {
			texts = append(texts, fmt.Sprintf("%s %d %d %d %d %d %s of %s %d %d %s", s.Entity, s.Version, s.Type, s.Schema, s.From, s.To,
				w.even.text(string(s.Body)), sealed.ID, sealed.At.UnixMicro(), sealed.Count, w.even.text(string(sealed.Body))))
		}
		begin = end
	}
	return texts, nil
}
