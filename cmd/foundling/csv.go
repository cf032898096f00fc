package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"strings"
)

// spreadsheet prints items as CSV: a line of names, then a line for each. The columns are the fields that JSON has, those of an inner object
// behind its name and a dot; a list is one cell of JSON, and what is not known is empty.
type spreadsheet struct {
	w    *csv.Writer
	kind reflect.Type
}

func newSpreadsheet[T any](to io.Writer) (*spreadsheet, error) {
	s := &spreadsheet{w: csv.NewWriter(to), kind: reflect.TypeFor[T]()}
	return s, s.w.Write(columns(s.kind, ""))
}

func (s *spreadsheet) add(item any) error {
	cells, err := cellsOf(reflect.ValueOf(item), s.kind)
	if err != nil {
		return err
	}
	for i := range cells {
		cells[i] = inert(oneLine(cells[i]))
	}
	return s.w.Write(cells)
}

func (s *spreadsheet) flush() error {
	s.w.Flush()
	return s.w.Error()
}

// inert is a cell that no spreadsheet takes for a formula.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) && !json.Valid([]byte(cell)) {
		return "'" + cell
	}
	return cell
}

// column is a field of a struct as JSON names it.
type column struct {
	name  string
	field int
	inner reflect.Type // of an object that has columns of its own; nil is a cell
	embed bool         // its fields are the outer object's
}

func columnsOf(t reflect.Type) []column {
	var list []column
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		c := column{name: name, field: i, embed: f.Anonymous && name == ""}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		_, marshals := reflect.New(inner).Interface().(json.Marshaler)
		if inner.Kind() == reflect.Struct && !marshals {
			c.inner = inner
		}
		list = append(list, c)
	}
	return list
}

func columns(t reflect.Type, before string) []string {
	var names []string
	for _, c := range columnsOf(t) {
		switch {
		case c.embed:
			names = append(names, columns(c.inner, before)...)
		case c.inner != nil:
			names = append(names, columns(c.inner, before+c.name+".")...)
		default:
			names = append(names, before+c.name)
		}
	}
	return names
}

// cellsOf is the cells of an object of a type; of one that is not there, as many empty ones.
func cellsOf(v reflect.Value, t reflect.Type) ([]string, error) {
	var cells []string
	for _, c := range columnsOf(t) {
		var field reflect.Value
		if v.IsValid() {
			field = v.Field(c.field)
		}
		for field.IsValid() && field.Kind() == reflect.Pointer {
			field = field.Elem() // no value where it is nil
		}
		if c.inner != nil {
			inner, err := cellsOf(field, c.inner)
			if err != nil {
				return nil, err
			}
			cells = append(cells, inner...)
			continue
		}
		cell, err := cellOf(field)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

func cellOf(v reflect.Value) (string, error) {
	if !v.IsValid() {
		return "", nil
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return "", err
	}
	var text string
	switch {
	case string(b) == "null":
		return "", nil
	case b[0] == '"':
		err = json.Unmarshal(b, &text)
		return text, err
	}
	return string(b), nil
}
