package findings_test

import (
	"testing"

	"github.com/foundling-go/foundling/projections/findings"
)

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"/a/b-1.db": "/a/b-1.db", "": "''", "my store": "'my store'", "it's": `'it'\''s'`, "$HOME;": "'$HOME;'",
		"\xff\x1b'\\": `$'\xff\x1b\'\\'`,
	} {
		if got := findings.ShellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
