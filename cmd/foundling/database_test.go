package main

import (
	"context"
	"net/url"
	"testing"

	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store/postgres"
)

// migrated is a database with a store.
func migrated(t *testing.T) pgtest.Template {
	t.Helper()
	hash, err := pgtest.HashOf(postgres.Migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.Template{
		Hash:    hash,
		Migrate: func(ctx context.Context, dsn string) error { return postgres.Migrate(ctx, dsn, postgres.Options{}) },
	}
}

// secretOf is the password in a connection string.
func secretOf(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := u.User.Password()
	return secret
}
