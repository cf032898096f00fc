package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
)

// The codes of errors of a server that people can do something about.
const (
	sqlNoPassword = "28P01" // invalid_password
	sqlNoEntry    = "28000" // invalid_authorization_specification
	sqlNoDatabase = "3D000"
	sqlNoRight    = "42501" // insufficient_privilege
	sqlReadOnly   = "25006"
)

// openDatabase opens the store in a database.
func openDatabase(ctx context.Context, p location, how opening) (store.Store, error) {
	s, err := postgres.Open(ctx, p.dsn, postgres.Options{Schema: p.schema, NoMigrate: how != toMake})
	if older := (*postgres.OlderError)(nil); how == toWork && errors.As(err, &older) && older.Version > 0 {
		s, err = postgres.Open(ctx, p.dsn, postgres.Options{Schema: p.schema})
	}
	if err != nil {
		return nil, p.unopened(err)
	}
	return s, nil
}

// unopened says why a store is not opened, and what to do about it.
func (p location) unopened(err error) error {
	var older *postgres.OlderError
	switch {
	case errors.As(err, &older) && older.Version == 0:
		return &exitError{exitNotFound, &hinted{fmt.Errorf("no store in schema %s of %s", p.schemaName(), p.shown), "foundling migrate makes one, with a role that may"}}
	case errors.As(err, &older):
		text := fmt.Sprintf("the store has schema version %d, which is older than this program's, %d", older.Version, postgres.SchemaVersion)
		return &exitError{exitCorrupt, &hinted{told{text, err}, hintOlder}}
	case errors.Is(err, postgres.ErrDSN):
		return usage("the store is given as a connection string that is none, or has a setting that is none: want postgres://user@host:port/database?setting=value")
	case errors.Is(err, postgres.ErrOptions):
		return usage("%w", err)
	case errors.Is(err, postgres.ErrServer):
		return &exitError{exitCorrupt, err}
	}
	err = told{inOneLine(err.Error()), err}
	switch codeOfServer(err) {
	case sqlNoPassword, sqlNoEntry:
		return &exitError{exitStore, &hinted{err, "the user is the connection string's, or PGUSER; the password is looked for there, in PGPASSWORD and in ~/.pgpass"}}
	case sqlNoDatabase:
		return &exitError{exitNotFound, err}
	case sqlNoRight:
		return &exitError{exitStore, &hinted{err, "foundling migrate makes or migrates a store with a role that may; foundling migrate --print says what it would run"}}
	case sqlReadOnly:
		return &exitError{exitRefused, err}
	}
	return err
}

// inOneLine is what is said of each address of a host, and of each way to speak to it, in one line, each once.
func inOneLine(text string) string {
	var parts []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, " ")
}

// schemaName is the schema that the store is in.
func (p location) schemaName() string {
	if p.schema == "" {
		return "foundling"
	}
	return harmless(p.schema)
}

// codeOfServer is the server's code of an error; empty where the error is not the server's.
func codeOfServer(err error) string {
	var of interface{ SQLState() string }
	if errors.As(err, &of) {
		return of.SQLState()
	}
	return ""
}

// told is an error in other words.
type told struct {
	text string
	err  error
}

func (t told) Error() string { return t.text }

func (t told) Unwrap() error { return t.err }
