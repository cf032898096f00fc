package main

import (
	"bufio"
	"encoding/json"
	"errors"
)

// feed prints the items of a document one by one, as they are found, so that a list of any length needs no room. It is for programs.
type feed[T any] struct {
	app    *app
	schema string
	w      *bufio.Writer
	sheet  *spreadsheet // of CSV
	n      int
}

// newFeed begins a document.
func newFeed[T any](a *app, schema string) (*feed[T], error) {
	f := &feed[T]{app: a, schema: schema, w: bufio.NewWriter(a.stdout)}
	switch a.form() {
	case formatCSV:
		var err error
		f.sheet, err = newSpreadsheet[T](f.w)
		return f, err
	case formatJSON:
		head, err := json.Marshal(struct {
			Schema string  `json:"schema"`
			Store  *string `json:"store"`
		}{schema, orNull(a.storeName())})
		if err != nil {
			return nil, err
		}
		_, err = f.w.Write(append(head[:len(head)-1], `,"items":[`+"\n"...))
		return f, err
	}
	return f, nil
}

// add prints an item.
func (f *feed[T]) add(item T) error {
	f.n++
	if f.sheet != nil {
		return f.sheet.add(item)
	}
	if f.n > 1 && f.app.form() == formatJSON {
		if err := f.w.WriteByte(','); err != nil {
			return err
		}
	}
	return writeJSON(f.w, item)
}

// flush has all that was added seen.
func (f *feed[T]) flush() error {
	var err error
	if f.sheet != nil {
		err = f.sheet.flush()
	}
	return errors.Join(err, f.w.Flush())
}

// end is what a document says behind its items.
type end struct {
	AsOf      asOf     `json:"as_of"`
	Truncated bool     `json:"truncated"`
	Next      *string  `json:"next"`
	Warnings  []string `json:"warnings"`
}

// end prints what comes behind the items.
func (f *feed[T]) end(e end) error {
	if f.app.form() != formatJSON {
		return f.flush()
	}
	if e.Warnings == nil {
		e.Warnings = []string{}
	}
	tail, err := json.Marshal(e)
	if err != nil {
		return err
	}
	tail[0] = ','
	_, err = f.w.Write(append([]byte("]"), append(tail, '\n')...))
	return errors.Join(err, f.flush())
}
