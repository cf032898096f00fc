package main

import (
	"strings"
	"testing"
)

// What may hold a password is never taken for a file, whose name would be told, and the error says nothing of it.
func TestWhatMayHoldAPasswordIsNoFile(t *testing.T) {
	for _, name := range []string{
		"ann:secret@host/db", "a:secret@host/db", "ab:/secret@host", "host=h password=secret", "sqlite:x?password=secret",
		"db?user=ann:secret", "h/db&user=ann:secret", "postgres:ann:secret@host", "PG:secret", "mysql://ann:secret@host/db", "postgres://ann:sec/secret@host",
	} {
		p, err := locationOf(name)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: taken for %+v, error %v", name, p, err)
		}
	}
	for _, name := range []string{"store.db", `C:\jobs\a@b.db`, "C:/jobs/a@b.db", "dir/a@b.db", "sqlite:a:b@c.db", "user.db", "a:b.db"} {
		if p, err := locationOf(name); err != nil || p.file != strings.TrimPrefix(name, "sqlite:") {
			t.Errorf("%q: taken for %+v, error %v", name, p, err)
		}
	}
}
