package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/projections"
)

// maxShown is how many bytes of a stored text a table shows.
const maxShown = 200

// harmless is a stored text on its way to a person.
func harmless(s string) string { return events.Printable(s, maxShown) }

// absolute is an instant in full, in UTC.
func absolute(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// unknown stands for what is not known or does not apply.
const unknown = "–"

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// oneLine is a line that may hold stored texts, with whatever cannot be printed escaped.
func oneLine(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !strconv.IsPrint(r):
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// table is rows of cells under a header. A column whose header begins with ">" is of numbers and stands to the right.
type table struct {
	header []string
	rows   [][]string
}

func newTable(header ...string) *table { return &table{header: header} }

// add takes a row. Whatever its cells hold, each stays one cell.
func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = oneLine(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// text is the table, two spaces between columns; nothing where there are no rows.
func (t *table) text() string {
	if len(t.rows) == 0 {
		return ""
	}
	right := make([]bool, len(t.header))
	names := make([]string, len(t.header))
	for i, name := range t.header {
		names[i], right[i] = strings.CutPrefix(name, ">")
	}
	lines := append([][]string{names}, t.rows...)
	width := make([]int, len(names))
	for _, cells := range lines {
		for i, cell := range cells {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, cells := range lines {
		var line strings.Builder
		for i, cell := range cells {
			gap := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if right[i] {
				cell, gap = gap+cell, ""
			}
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(cell + gap)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// number is a cell of a table of numbers.
func number(n int) string { return strconv.Itoa(n) }

// asOf is the line on standard error that says how far the log was read for an answer.
func (a *app) asOf(m projections.Mark) {
	if m.Position == 0 {
		a.note("as of position 0: the log is empty")
		return
	}
	a.note("as of position %d · %s", m.Position, absolute(m.At))
}

// andMore is a list's last line where it was cut.
func andMore(more bool) string {
	if more {
		return "…and more, which --rows left out\n"
	}
	return ""
}

// inFull has ids shown in full where there is room for them.
func (a *app) inFull(n *events.Names) *events.Names {
	if a.wide() {
		n.Short = nil
	}
	return n
}

// namesFor is how lines of people's output show ids and times.
func namesFor(short *shortIDs) *events.Names {
	return &events.Names{Short: short.text, Clock: absolute}
}
