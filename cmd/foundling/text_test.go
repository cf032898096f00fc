package main

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestHarmless(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"mail", "mail"},
		{"a b=c", "a b=c"},
		{"Grüße, 世界", "Grüße, 世界"},
		{"", ""},
		{"\x1b[31mred", `"\x1b[31mred"`},
		{"a\nb", `"a\nb"`},
		{"\xff", `"\xff"`},
		{"\u202egnp.exe", `"\u202egnp.exe"`},
		{"\u009b31m", `"\u009b31m"`},
		{strings.Repeat("x", maxShown), strings.Repeat("x", maxShown)},
		{strings.Repeat("x", maxShown+1), strings.Repeat("x", maxShown) + "…"},
		{strings.Repeat("x", maxShown-1) + "ü", strings.Repeat("x", maxShown-1) + "…"},
	} {
		if got := harmless(test.text); got != test.want {
			t.Errorf("%q: %s, want %s", test.text, got, test.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`say "no" to C:\ü`, `say "no" to C:\ü`},
		{"a\x1b[2J\nb\xff\ufffd", `a\x1b[2J\nb\xff` + "\ufffd"},
	} {
		if got := oneLine(test.text); got != test.want {
			t.Errorf("%q: %s, want %s", test.text, got, test.want)
		}
	}
}

// Whatever was stored, no character reaches a person's terminal that cannot be printed.
func TestNothingUnprintableIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for _, shown := range []string{harmless(stored), oneLine(stored), quoted([]byte(stored))} {
			for _, r := range shown {
				if !unicode.IsPrint(r) {
					t.Errorf("%q is shown as %q", stored, shown)
				}
			}
		}
	})
}

func TestTable(t *testing.T) {
	table := newTable("TOPIC", ">QUEUED", "")
	if got := table.text(); got != "" {
		t.Errorf("no rows: %q", got)
	}
	table.add("mail", "7", "paused")
	table.add("grüße", "1234567", "")
	want := "TOPIC   QUEUED\nmail         7  paused\ngrüße  1234567\n"
	if got := table.text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
