package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
	"github.com/spf13/cobra"
)

// document is the one form of JSON that commands print: one object that says how far the log was read, of which store, and what was found. Ids
// and tokens are strings, durations are seconds and say so in their names, times are RFC 3339 in UTC, and what is not known is null.
type document[T any] struct {
	Schema    string   `json:"schema"` // such as foundling.topics/v1; it changes when a reader of it would break
	AsOf      asOf     `json:"as_of"`
	Store     string   `json:"store"`
	Truncated bool     `json:"truncated"`
	Next      *string  `json:"next"`
	Warnings  []string `json:"warnings"`
	Result    any      `json:"result,omitempty"` // of a command that does something: what came of it as a whole
	Items     []T      `json:"items"`
}

// asOf is how far the log was read. Position is null where the answer is of the rows of the store at that time.
type asOf struct {
	Position *int64     `json:"position"`
	Time     *time.Time `json:"time"`
}

// atMark is an answer from the log, up to a place in it.
func atMark(m projections.Mark) asOf {
	if m.Position == 0 {
		return asOf{Position: new(int64)} // the log is empty
	}
	return asOf{Position: &m.Position, Time: instant(m.At)}
}

// atTime is an answer from the rows of a store.
func atTime(t time.Time) asOf { return asOf{Time: instant(t)} }

// printJSON prints a document: one line.
func printJSON[T any](a *app, d document[T]) error {
	path, err := a.path()
	if err != nil {
		return err
	}
	d.Store = "sqlite:" + path
	if d.Warnings == nil {
		d.Warnings = []string{}
	}
	if d.Items == nil {
		d.Items = []T{}
	}
	return writeJSON(a.stdout, d)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// jsonFlag has a command print JSON where it is asked to, its errors too.
func jsonFlag(a *app, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON object instead of text, and errors as one too")
}

// hinted is an error with what to do about it.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() + ": " + h.hint }

func (h *hinted) Unwrap() error { return h.err }

// jsonError is an error as JSON has it.
type jsonError struct {
	Error struct {
		Code    string  `json:"code"`
		Message string  `json:"message"`
		Hint    *string `json:"hint"`
	} `json:"error"`
}

// errorDocument is an error with its code as a word.
func errorDocument(err error, code int) jsonError {
	var d jsonError
	d.Error.Code, d.Error.Message = codeWord(code), err.Error()
	var h *hinted
	if errors.As(err, &h) {
		d.Error.Hint = &h.hint
		d.Error.Message = strings.TrimSuffix(d.Error.Message, ": "+h.hint)
	}
	return d
}

// codeWord is an exit code as the word of an error object.
func codeWord(code int) string {
	switch code {
	case exitFinding:
		return "finding"
	case exitUsage:
		return "usage"
	case exitNotFound:
		return "not_found"
	case exitRefused:
		return "refused"
	case exitConflict:
		return "conflict"
	case exitCorrupt:
		return "corrupt"
	case exitInterrupted:
		return "interrupted"
	}
	return "store_unavailable"
}

// seconds is a length of time as JSON has it.
func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// instant is a time as JSON has it; null where it is none.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// idOrNull is an id as JSON has it; null where it is none.
func idOrNull(id events.ID) *string {
	if id == (events.ID{}) {
		return nil
	}
	return orNull(id.String())
}

// orNull is a text as JSON has it; null where it is empty.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
