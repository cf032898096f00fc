package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// location is where the store is that the flags and the environment name.
func (a *app) location() (location, error) {
	if a.batch != "" {
		path, err := a.batchPath(a.batch)
		return location{file: path}, err
	}
	name := a.store
	if name == "" {
		name = a.env("FOUNDLING_STORE")
	}
	if name == "" {
		return location{}, usage("no store: give --store FILE or postgres://…, --batch NAME or set FOUNDLING_STORE")
	}
	return locationOf(name)
}

// storeName is the store that the flags name as outputs have it; empty where they name none.
func (a *app) storeName() string {
	p, err := a.location()
	if err != nil {
		return ""
	}
	return p.String()
}

// storeFlag is --store as another command line may have it: as it was given, but for secrets. It is empty where it was not given.
func (a *app) storeFlag() string {
	if p, err := a.location(); a.store != "" && (err != nil || p.dsn != "") {
		return p.shown
	}
	return a.store
}

// opening is what a store is opened for.
type opening int

const (
	toLook opening = iota // it must be there, and is not migrated
	toWork                // it must be there, and is migrated where it is older
	toMake                // it is made where it is not there
)

// openExisting opens the store that the flags name, to look at it or to act on it. One that is not there is an error: a question must not make a
// store. Nor does it migrate one, since that would shut out whoever works on it with an older program.
func (a *app) openExisting(ctx context.Context) (store.Store, error) { return a.openNamed(ctx, toLook) }

// openToWork opens the store that the flags name, and migrates it where it is older. One that is not there is an error.
func (a *app) openToWork(ctx context.Context) (store.Store, error) { return a.openNamed(ctx, toWork) }

// openOrMake opens the store that the flags name, or makes it.
func (a *app) openOrMake(ctx context.Context) (store.Store, error) { return a.openNamed(ctx, toMake) }

func (a *app) openNamed(ctx context.Context, how opening) (store.Store, error) {
	p, err := a.location()
	if err != nil {
		return nil, err
	}
	return a.open(ctx, p, how)
}

// open is the one place where a store is opened by its name.
func (a *app) open(ctx context.Context, p location, how opening) (store.Store, error) {
	if p.dsn != "" {
		return openDatabase(ctx, p, how)
	}
	return a.openFile(ctx, p.file, how)
}

// hintOlder is what is to be done with a store of an older version.
const hintOlder = "once nobody works on it with an older program, foundling migrate brings it up to date"

// openFile opens the store in a file.
func (a *app) openFile(ctx context.Context, path string, how opening) (store.Store, error) {
	if how == toMake {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, &exitError{exitStore, err}
		}
	}
	s, err := sqlite.Open(ctx, path, sqlite.Options{MustExist: how != toMake, NoMigrate: how == toLook})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notFound("no store at %s", path)
	case errors.As(err, new(*sqlite.OlderError)):
		return nil, &exitError{exitCorrupt, &hinted{err, hintOlder}}
	case err != nil:
		return nil, err
	case a.proofless:
		return withoutProof(s), nil
	}
	return s, nil
}

// batchDir is where batches have their stores.
func (a *app) batchDir() (string, error) {
	if dir := a.env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "foundling"), nil
	}
	home := a.env("HOME")
	if home == "" {
		return "", usage("no place for batches: set XDG_STATE_HOME or HOME, or give --store FILE")
	}
	return filepath.Join(home, ".local", "state", "foundling"), nil
}

// batchPath is the store of a batch.
func (a *app) batchPath(name string) (string, error) {
	if err := checkBatchName(name); err != nil {
		return "", err
	}
	dir, err := a.batchDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name+".db"), nil
}

// checkBatchName refuses names that would not be one plain file.
func checkBatchName(name string) error {
	if name == "" || len(name) > 100 || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") {
		return usage("batch name %q: want 1 to 100 letters, digits, dots, dashes and underscores, not beginning with a dot or a dash", name)
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return usage("batch name %q: %q is not a letter, digit, dot, dash or underscore", name, r)
		}
	}
	return nil
}

// tilde shows a path as a person would write it.
func (a *app) tilde(path string) string {
	if home := a.env("HOME"); home != "" && strings.HasPrefix(path, home+string(filepath.Separator)) {
		return "~" + path[len(home):]
	}
	return fmt.Sprint(path)
}
