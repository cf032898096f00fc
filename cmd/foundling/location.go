package main

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// location is where a store is: in a file, or in a schema of a Postgres database.
type location struct {
	file   string // of SQLite
	dsn    string // of Postgres, with its secrets; empty where the store is in a file
	schema string // of the store in the database; empty is the usual one
	shown  string // the dsn as it may be printed
}

// String is the location as outputs have it: without a password, and so that the command understands it again.
func (p location) String() string {
	if p.dsn != "" {
		return p.shown
	}
	return "sqlite:" + p.file
}

// flag is the location as --store has it in a command that people are told to run.
func (p location) flag() string {
	if p.dsn != "" {
		return p.shown
	}
	return p.file
}

// name is what a batch there is called that was given no name.
func (p location) name() string {
	if p.dsn == "" {
		return strings.TrimSuffix(filepath.Base(p.file), ".db")
	}
	address, _, _ := strings.Cut(p.shown[len("postgres://"):], "?")
	if _, database, ok := strings.Cut(address, "/"); ok && database != "" {
		return database
	}
	return "postgres"
}

// dir is the folder of the store's file, where there is room for what belongs to its work; empty where it has none.
func (p location) dir() string {
	if p.dsn != "" {
		return ""
	}
	return filepath.Dir(p.file)
}

// schemaKey is the setting of a connection string that is not the server's: which schema the store is in.
const schemaKey = "schema"

var (
	// scheme is what an address begins with.
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	// nearly is what somebody has written who meant an address of Postgres.
	nearly = regexp.MustCompile(`(?i)^\s*((postgres|postgresql|pgsql|pg):|(postgres|postgresql)//)`)
	// pair is a setting of a connection string, as in host=db user=ann or db?user=ann.
	pair = regexp.MustCompile(`(?i)(^|[\s?&])(host|hostaddr|port|user|dbname|database|service|servicefile|passfile|options|ssl[a-z]+|application_name|connect_timeout)\s*=`)
	// secretly is a setting that is a secret.
	secretly = regexp.MustCompile(`(?i)(password|passwd|pwd)\s*=`)
	// credentials are a user with a password, as in ann:secret@host. One letter before a slash is a drive of Windows.
	credentials = regexp.MustCompile(`[^/\\\s:@]{2,}:[^@]*@|[^/\\\s:@]:[^/\\@][^@]*@`)
)

// locationOf is where a name says that a store is. What is no name of a store is a usage error, which repeats nothing of it: it may hold a password.
func locationOf(name string) (location, error) {
	file, isFile := strings.CutPrefix(name, "sqlite:")
	begun := strings.ToLower(scheme.FindString(name))
	switch {
	case begun == "postgres://" || begun == "postgresql://":
		return locationInDatabase(name)
	case begun != "":
		return location{}, usage("store %s…: want FILE, sqlite:FILE or postgres://user@host:port/database", begun)
	// A file that is called so is not believed to be one: it would be made, and its name told.
	case secretly.MatchString(name), !isFile && (nearly.MatchString(name) || pair.MatchString(name) || credentials.MatchString(name)):
		return location{}, usage("the store is given as a connection string of another form: want postgres://user@host:port/database, or sqlite:FILE")
	case isFile && file == "":
		return location{}, usage("store sqlite: without a file: want sqlite:FILE")
	case isFile:
		return location{file: file}, nil
	}
	return location{file: name}, nil
}

// locationInDatabase takes the schema out of a connection string, and makes one that may be printed. It cuts at the characters that every reader cuts at:
// behind one that should have been escaped, what is printed might be the rest of a password.
func locationInDatabase(dsn string) (location, error) {
	rest := dsn[len(scheme.FindString(dsn)):]
	path := strings.IndexAny(rest, "/?#")
	if path < 0 {
		path = len(rest)
	}
	authority, rest := rest[:path], rest[path:]
	if strings.ContainsAny(rest, "@#") {
		return location{}, usage("the connection string of the store has an @ or a # behind its host: what stands in a password, or in a setting, is to be " +
			"escaped: / as %%2F, ? as %%3F, # as %%23, @ as %%40")
	}
	user, host := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, host = authority[:at], authority[at:]
		user, _, _ = strings.Cut(user, ":")
	}
	database, query, _ := strings.Cut(rest, "?")
	p := location{shown: "postgres://" + user + host + database}
	var settings []string
	for setting := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(setting, "=")
		if key != schemaKey {
			settings = append(settings, setting)
			continue
		}
		var err error
		if p.schema, err = url.QueryUnescape(value); err != nil || p.schema == "" {
			return location{}, usage("the connection string of the store has a setting schema that is no name")
		}
		p.shown += "?" + setting
	}
	p.dsn = "postgres://" + authority + database
	if len(settings) > 0 && query != "" {
		p.dsn += "?" + strings.Join(settings, "&")
	}
	return p, nil
}
