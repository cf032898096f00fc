//go:build unix

package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/store/sqlite"
)

func TestStoreWithTwoNamesIsRefused(t *testing.T) {
	path := made(t)
	s := open(t, path, sqlite.Options{})
	second := filepath.Join(t.TempDir(), "second.db")
	if err := os.Link(path, second); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, second} {
		if _, err := sqlite.Open(t.Context(), name, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "2 names") {
			t.Errorf("%s: error %v, want one that counts its names", name, err)
		}
	}
	if got := beside(t, second); got != "second.db" {
		t.Errorf("made beside the second name: %s", got)
	}
	refusesToWrite(t, s, path, "2 names")
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	commit(t, s, enqueueing("mail", 1))
}
