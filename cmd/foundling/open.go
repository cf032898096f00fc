package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// path is the file of the store that the flags and the environment name.
func (a *app) path() (string, error) {
	if a.batch != "" {
		return a.batchPath(a.batch)
	}
	name := a.store
	if name == "" {
		name = a.env("FOUNDLING_STORE")
	}
	if name == "" {
		return "", usage("no store: give --store FILE, --batch NAME or set FOUNDLING_STORE")
	}
	if file, ok := strings.CutPrefix(name, "sqlite:"); ok {
		return file, nil
	}
	if scheme, _, ok := strings.Cut(name, "://"); ok {
		return "", usage("store %s://…: this version opens sqlite:FILE", scheme)
	}
	if connection.MatchString(name) {
		return "", usage("the store is given as a connection string: this version opens sqlite:FILE")
	}
	return name, nil
}

// connection is what a connection string looks like that holds a secret. Nothing of it is printed.
var connection = regexp.MustCompile(`(?i)\b(password|passwd|pwd|sslpassword)\s*=`)

// storeName is the store that the flags name as outputs have it; empty where they name none.
func (a *app) storeName() string {
	path, err := a.path()
	if err != nil {
		return ""
	}
	return "sqlite:" + path
}

// openExisting opens the store that the flags name, to look at it or to act on it. One that is not there is an error: a question must not make a
// store. Nor does it migrate one, since that would shut out whoever works on it with an older program.
func (a *app) openExisting(ctx context.Context) (store.Store, error) {
	s, err := a.openFound(ctx, sqlite.Options{MustExist: true, NoMigrate: true})
	if errors.As(err, new(*sqlite.OlderError)) {
		return nil, &exitError{exitCorrupt, &hinted{err, "once nobody works on it with an older program, foundling migrate brings it up to date"}}
	}
	return s, err
}

// openToWork opens the store that the flags name, and migrates it where it is older. One that is not there is an error.
func (a *app) openToWork(ctx context.Context) (store.Store, error) {
	return a.openFound(ctx, sqlite.Options{MustExist: true})
}

func (a *app) openFound(ctx context.Context, o sqlite.Options) (store.Store, error) {
	path, err := a.path()
	if err != nil {
		return nil, err
	}
	s, err := a.open(ctx, path, o)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("no store at %s", path)
	}
	return s, err
}

// open opens the store in a file.
func (a *app) open(ctx context.Context, path string, o sqlite.Options) (store.Store, error) {
	s, err := sqlite.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	if a.proofless {
		return withoutProof(s), nil
	}
	return s, nil
}

// openOrMake opens the store that the flags name, or makes it.
func (a *app) openOrMake(ctx context.Context) (store.Store, error) {
	path, err := a.path()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, &exitError{exitStore, err}
	}
	return a.open(ctx, path, sqlite.Options{})
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
