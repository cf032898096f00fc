package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// format is a form in which a command prints what it has found.
type format string

// The forms.
const (
	formatTable format = "table" // for people
	formatWide  format = "wide"  // for people with room: ids and times in full
	formatJSON  format = "json"  // one object
	formatJSONL format = "jsonl" // its items alone, one on a line
	formatCSV   format = "csv"   // its items alone, a column for each field
)

func formats() []format { return []format{formatTable, formatWide, formatJSON, formatJSONL, formatCSV} }

// String implements pflag.Value.
func (f *format) String() string {
	if *f == "" {
		return string(formatTable)
	}
	return string(*f)
}

// Set implements pflag.Value.
func (f *format) Set(word string) error {
	if !slices.Contains(formats(), format(word)) {
		return usage("want table, wide, json, jsonl or csv")
	}
	*f = format(word)
	return nil
}

// Type implements pflag.Value.
func (*format) Type() string { return "FORM" }

// printing has a command print in any form.
func printing(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.VarP(&a.format, "output", "o", "`FORM` of what is printed: table, wide (ids and times in full), json (one object), jsonl (its items), csv")
	flags.BoolVar(&a.json, "json", false, "the same as --output json")
	cmd.MarkFlagsMutuallyExclusive("output", "json")
	complete(cmd, "output", fixed("table", "wide", "json", "jsonl", "csv"))
}

// objectsFlag has a command whose standard output is its children's say what it says itself as JSON.
func objectsFlag(a *app, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "say what it says on standard error as JSON, an object on a line: notes, and at the end what came of it")
}

// printingList has a command that prints a list print in any form, and no more than so many items of it.
func printingList(a *app, cmd *cobra.Command) {
	printing(a, cmd)
	cmd.Flags().IntVar(&a.rows, "rows", 0, "print at most `N` items (default all)")
}

// form is the form that was asked for.
func (a *app) form() format {
	switch {
	case a.json:
		return formatJSON
	case a.format == "":
		return formatTable
	}
	return a.format
}

// forPeople reports whether a command prints text, and not what a program reads.
func (a *app) forPeople() bool { return a.form() == formatTable || a.wide() }

// wide reports whether ids and times are to be printed in full.
func (a *app) wide() bool { return a.form() == formatWide }

// objects reports whether errors are objects too.
func (a *app) objects() bool { return a.form() == formatJSON || a.form() == formatJSONL }

// checkRows refuses a bound that no list could keep.
func (a *app) checkRows() error {
	if a.rows < 0 {
		return usage("--rows %d: want 0 or more", a.rows)
	}
	return nil
}

// few is as much of a list as is to be printed, and whether there is more.
func few[T any](a *app, list []T) (shown []T, more bool) {
	if a.rows == 0 || len(list) <= a.rows {
		return list, false
	}
	return list[:a.rows], true
}
