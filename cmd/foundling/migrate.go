package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/spf13/cobra"
)

func newMigrate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a store of an older version up to date",
		Long: "What works on a store does this by itself: run, enqueue, work and demo. What only looks at it, or acts on it, does not, since whoever works\n" +
			"on it with an older program is shut out from then on. There is no way back but a copy of the file.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.migrate(cmd.Context()) },
	}
	printing(a, cmd)
	return cmd
}

// jsonMigrated is what came of a migration as JSON has it.
type jsonMigrated struct {
	From int `json:"from"` // the schema that the store had
	To   int `json:"to"`   // that it has now
}

func (a *app) migrate(ctx context.Context) error {
	m := jsonMigrated{From: sqlite.SchemaVersion, To: sqlite.SchemaVersion}
	s, err := a.openFound(ctx, sqlite.Options{MustExist: true, NoMigrate: true})
	if older := (*sqlite.OlderError)(nil); errors.As(err, &older) {
		m.From = older.Version
		s, err = a.openToWork(ctx)
	}
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
	if m.From == m.To {
		_, err = fmt.Fprintf(a.stdout, "nothing to do: the store has schema %d\n", m.To)
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "migrated from schema %d to schema %d\n", m.From, m.To)
	return err
}
