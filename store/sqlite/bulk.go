package sqlite

import "strings"

// maxRows is the most rows of one statement. Statements are prepared for powers of two of rows up to it, so there are few of them.
const maxRows = 64

// bulk is a statement for many rows: its text up to them, the text of one, and the text behind them.
type bulk struct {
	head, row, tail string
	width           int // parameters of one row
}

func width(columns string) int { return strings.Count(columns, ",") + 1 }

// tuple is the parameters for some columns.
func tuple(columns string) string { return "(?" + strings.Repeat(", ?", width(columns)-1) + ")" }

// of is the columns of one table in a query of several.
func of(table, columns string) string {
	return table + "." + strings.ReplaceAll(columns, ", ", ", "+table+".")
}

func inserting(table, columns string) *bulk {
	return &bulk{"INSERT INTO " + table + " (" + columns + ") VALUES ", tuple(columns), "", width(columns)}
}

// replacing is an insert that puts a row in the place of one with the same key.
func replacing(table, columns, key string) *bulk {
	var sets []string
	for column := range strings.SplitSeq(columns, ", ") {
		if !strings.Contains(", "+key+",", ", "+column+",") {
			sets = append(sets, column+" = excluded."+column)
		}
	}
	return inserting(table, columns).behind(" ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(sets, ", "))
}

func deleting(table, key string) *bulk { return among("DELETE FROM "+table+" WHERE", key) }

func selecting(columns, table, key string) *bulk {
	return among("SELECT "+columns+" FROM "+table+" WHERE", key)
}

// among is a statement for the rows whose key is one of many.
func among(head, key string) *bulk {
	if width(key) == 1 {
		return &bulk{head + " " + key + " IN (", "?", ")", 1}
	}
	return &bulk{head + " (" + key + ") IN (VALUES ", tuple(key), ")", width(key)}
}

// behind adds to the end of the statement.
func (b *bulk) behind(tail string) *bulk {
	b.tail += tail
	return b
}

func (b *bulk) text(rows int) string {
	return b.head + strings.Repeat(b.row+", ", rows-1) + b.row + b.tail
}

// bulkSize names a prepared statement.
type bulkSize struct {
	*bulk
	rows int
}

func (w *writer) bulkText(b *bulk, rows int) string {
	text, ok := w.texts[bulkSize{b, rows}]
	if !ok {
		text = b.text(rows)
		w.texts[bulkSize{b, rows}] = text
	}
	return text
}

// bulk runs a statement for all rows whose parameters args are.
func (w *writer) bulk(b *bulk, args []any) error {
	for rows := len(args) / b.width; rows > 0; rows = len(args) / b.width {
		n := maxRows
		for n > rows {
			n /= 2
		}
		if err := w.exec(w.bulkText(b, n), args[:n*b.width]...); err != nil {
			return err
		}
		args = args[n*b.width:]
	}
	return nil
}

// selectAll runs a query for all rows whose keys args are, and found for each that it reads. The last keys are given again until their
// number is a power of two: a row that is asked for twice is found once.
func (w *writer) selectAll(b *bulk, args []any, r *record, found func() error) error {
	for len(args) > 0 {
		rows := min(len(args)/b.width, maxRows)
		part := args[: rows*b.width : rows*b.width]
		args = args[len(part):]
		n := 1
		for n < rows {
			n *= 2
		}
		last := part[len(part)-b.width:]
		for range n - rows {
			part = append(part, last...)
		}
		if err := w.query(r, found, w.bulkText(b, n), part...); err != nil {
			return err
		}
	}
	return nil
}
