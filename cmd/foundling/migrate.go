package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/spf13/cobra"
)

func newMigrate(a *app) *cobra.Command {
	only := false
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a store of an older version up to date, or make one in a database",
		Long: "What works on a store does this by itself: run, enqueue, work and demo. What only looks at it, or acts on it, does not, since whoever works\n" +
			"on it with an older program is shut out from then on. There is no way back but a copy of the file, or of the schema.\n\n" +
			"In a database the role must own the schema, and have the right CREATE on the database where the schema is not there yet: all that lies in it\n" +
			"belongs to whoever migrates. The connection must be a direct one, not a pooler's that gives each transaction another.\n" +
			"--print runs nothing, and prints the SQL that would be run, for whoever may: nothing where there is nothing to do. It is one transaction.",
		Example: "  foundling migrate --store postgres://owner@db.example/app\n" +
			"  foundling migrate --print --store postgres://reader@db.example/app | psql -v ON_ERROR_STOP=1 postgres://owner@db.example/app\n" +
			"  foundling migrate --print --store app.db | sqlite3 -bail app.db",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if only {
				return a.printMigration(cmd.Context())
			}
			return a.migrate(cmd.Context())
		},
	}
	printing(a, cmd)
	cmd.Flags().BoolVar(&only, "print", false, "run nothing, and print the SQL that would be run")
	cmd.MarkFlagsMutuallyExclusive("print", "output", "json")
	return cmd
}

// jsonMigrated is what came of a migration as JSON has it.
type jsonMigrated struct {
	From int `json:"from"` // the schema that the store had; 0 where there was none
	To   int `json:"to"`   // that it has now
}

func (a *app) migrate(ctx context.Context) error {
	p, err := a.location()
	if err != nil {
		return err
	}
	s, m, err := a.migrated(ctx, p)
	if err != nil {
		return err
	}
	defer s.Close()
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if !a.forPeople() {
		return printJSON(a, document[jsonMigrated]{Schema: "foundling.migrate/v1", AsOf: atTime(now), Items: []jsonMigrated{m}})
	}
	switch m.From {
	case m.To:
		_, err = fmt.Fprintf(a.stdout, "nothing to do: the store has schema %d\n", m.To)
	case 0:
		_, err = fmt.Fprintf(a.stdout, "made a store with schema %d\n", m.To)
	default:
		_, err = fmt.Fprintf(a.stdout, "migrated from schema %d to schema %d\n", m.From, m.To)
	}
	return err
}

// migrated migrates the store, or makes it in a database, and opens it.
func (a *app) migrated(ctx context.Context, p location) (store.Store, jsonMigrated, error) {
	m := jsonMigrated{From: sqlite.SchemaVersion, To: sqlite.SchemaVersion}
	how := toWork
	var err error
	if p.dsn != "" {
		m.To, how = postgres.SchemaVersion, toMake
		if m.From, err = postgres.Version(ctx, p.dsn, postgres.Options{Schema: p.schema}); err != nil {
			return nil, m, p.unopened(err)
		}
	} else if m.From, err = versionOfFile(ctx, p.file); err != nil {
		return nil, m, err
	}
	s, err := a.open(ctx, p, how)
	return s, m, err
}

// versionOfFile is the schema version of the store in a file that is there.
func versionOfFile(ctx context.Context, path string) (int, error) {
	s, err := sqlite.Open(ctx, path, sqlite.Options{MustExist: true, NoMigrate: true})
	if older := (*sqlite.OlderError)(nil); errors.As(err, &older) {
		return older.Version, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 0, notFound("no store at %s", path)
	}
	if err != nil {
		return 0, err
	}
	return sqlite.SchemaVersion, s.Close()
}

// printMigration prints the SQL that would be run. It is ours alone, tabs and all.
func (a *app) printMigration(ctx context.Context) error {
	p, err := a.location()
	if err != nil {
		return err
	}
	text, err := script(ctx, p)
	if err != nil {
		return err
	}
	if text == "" {
		a.note("nothing to do: the store has the schema of this program")
	}
	if _, err = io.WriteString(a.raw.stdout, text); errors.Is(err, syscall.EPIPE) {
		return nil // nobody hears it any more
	}
	return err
}

// script is the SQL that a store needs. Of one that has no store yet it is what makes one.
func script(ctx context.Context, p location) (string, error) {
	if p.dsn != "" {
		o := postgres.Options{Schema: p.schema}
		from, err := postgres.Version(ctx, p.dsn, o)
		if err != nil {
			return "", p.unopened(err)
		}
		return postgres.Script(from, o)
	}
	from, err := versionOfFile(ctx, p.file)
	if err != nil && codeOf(err) != exitNotFound {
		return "", err
	}
	return sqlite.Script(from)
}
