package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/foundling-go/foundling/events"
)

// line is one parsed line of a story. What a step reads of it is taken out, so that what is left over can be refused.
type line struct {
	verb  string
	words []string
	named []datadriven.CmdArg
	err   error // the first thing that was wrong
}

func parseLine(text string) (*line, error) {
	verb, args, err := datadriven.ParseLine(text)
	if err != nil {
		return nil, err
	}
	l := &line{verb: verb}
	for _, arg := range args {
		if len(arg.Vals) == 0 {
			l.words = append(l.words, arg.Key)
		} else {
			l.named = append(l.named, arg)
		}
	}
	return l, nil
}

func (l *line) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(l.verb+": "+format, args...)
	}
}

// end is what was wrong with the line, or was not understood of it.
func (l *line) end() error {
	if l.err == nil && len(l.words) > 0 {
		l.fail("%q is not understood", l.words[0])
	}
	if l.err == nil && len(l.named) > 0 {
		l.fail("%s= is not understood", l.named[0].Key)
	}
	return l.err
}

// word takes the next plain word.
func (l *line) word(what string) string {
	if len(l.words) == 0 {
		l.fail("%s is missing", what)
		return ""
	}
	word := l.words[0]
	l.words = l.words[1:]
	return word
}

// rest takes all plain words that are left.
func (l *line) rest() []string {
	words := l.words
	l.words = nil
	return words
}

// flag takes a plain word where it is there.
func (l *line) flag(word string) bool {
	for i, w := range l.words {
		if w == word {
			l.words = append(l.words[:i:i], l.words[i+1:]...)
			return true
		}
	}
	return false
}

func (l *line) values(key string) []string {
	for i, arg := range l.named {
		if arg.Key == key {
			l.named = append(l.named[:i:i], l.named[i+1:]...)
			return arg.Vals
		}
	}
	return nil
}

// text takes the value of key, empty where it is not given.
func (l *line) text(key string) string { return strings.Join(l.values(key), ",") }

// number takes the whole number of key, none where it is not given.
func (l *line) number(key string, none int) int {
	text := l.text(key)
	if text == "" {
		return none
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		l.fail("%s=%s is no whole number", key, text)
	}
	return n
}

// yes takes yes or no, no where it is not given.
func (l *line) yes(key string) bool {
	text := l.text(key)
	if text != "" && text != "yes" && text != "no" {
		l.fail("%s=%s: want yes or no", key, text)
	}
	return text == "yes"
}

// token takes the token of a permit or claim, 0 where it is not given.
func (l *line) token() events.Token { return events.Token(max(l.number("token", 0), 0)) }

// length takes the duration of key, 0 where it is not given.
func (l *line) length(key string) time.Duration {
	text := l.text(key)
	if text == "" {
		return 0
	}
	return l.duration(key, text)
}

// duration reads the value of key.
func (l *line) duration(key, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		l.fail("%s=%s is no duration", key, text)
	}
	return d
}

// instant takes the time of key, which is said as the time since the start; zero where it is not given.
func (l *line) instant(key string) time.Time {
	for _, arg := range l.named {
		if arg.Key == key {
			return start.Add(l.length(key))
		}
	}
	return time.Time{}
}

func (l *line) priority() events.Priority {
	p, err := events.ParsePriority(l.text("priority"))
	if err != nil {
		l.fail("%v", err)
	}
	return p
}

// lines parses the input of a step.
func lines(input string) ([]*line, error) {
	var list []*line
	for text := range strings.Lines(input) {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		l, err := parseLine(text)
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}
