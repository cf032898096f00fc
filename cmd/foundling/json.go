package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

// document is the one form of JSON that commands print: one object that says how far the log was read, of which store, and what was found. Ids,
// positions and tokens are strings, durations are seconds and say so in their names, times are RFC 3339 in UTC, and what is not known is null.
type document[T any] struct {
	Schema    string   `json:"schema"` // such as foundling.topics/v1; it changes when a reader of it would break
	AsOf      asOf     `json:"as_of"`
	Store     *string  `json:"store"`            // null of what is not about a store
	Truncated bool     `json:"truncated"`        // there is more: it was interrupted, or had as many items as were asked for
	Next      *string  `json:"next"`             // what goes on behind the items: a cursor for --after; null where nothing does
	Warnings  []string `json:"warnings"`         // what could not be read, for people
	Result    any      `json:"result,omitempty"` // what came of it as a whole
	Items     []T      `json:"items"`

	apart bool // it is not about a store
}

// asOf is how far the log was read. Position is null where the answer is of the rows of the store at that time.
type asOf struct {
	Position *string    `json:"position"`
	Time     *time.Time `json:"time"`
}

// atMark is an answer from the log, up to a place in it.
func atMark(m projections.Mark) asOf {
	at := whole(m.Position)
	return asOf{Position: &at, Time: instant(m.At)} // 0 where the log is empty
}

// atTime is an answer from the rows of a store.
func atTime(t time.Time) asOf { return asOf{Time: instant(t)} }

// printJSON prints a document in the form that was asked for: all of it, or its items alone.
func printJSON[T any](a *app, d document[T]) error {
	if !d.apart {
		d.Store = orNull(a.storeName())
	}
	if d.Warnings == nil {
		d.Warnings = []string{}
	}
	if d.Items == nil {
		d.Items = []T{}
	}
	switch a.form() {
	case formatJSONL:
		for _, item := range d.Items {
			if err := writeJSON(a.stdout, item); err != nil {
				return err
			}
		}
		return nil
	case formatCSV:
		sheet, err := newSpreadsheet[T](a.stdout)
		for _, item := range d.Items {
			err = errors.Join(err, sheet.add(item))
		}
		return errors.Join(err, sheet.flush())
	}
	return writeJSON(a.stdout, d)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
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

// whole is a whole number of any size as JSON has it: as a string, since not every reader has as many digits.
func whole[N ~int64 | ~uint64](n N) string { return fmt.Sprint(n) }

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
