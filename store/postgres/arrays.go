package postgres

import (
	"github.com/foundling-go/foundling/events"
	"github.com/jackc/pgx/v5/pgtype"
)

// arrays gives the arguments of a statement a form that the driver encodes without a look at each value's type: a column of ids by way of their text
// took a tenth of all the time that a process needs for its commits.
func arrays(args []any) []any {
	for i, arg := range args {
		switch list := arg.(type) {
		case []events.ID:
			args[i] = uuids(list, func(id events.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} })
		case []*events.ID:
			args[i] = uuids(list, func(id *events.ID) (u pgtype.UUID) {
				if id != nil {
					u = pgtype.UUID{Bytes: *id, Valid: true}
				}
				return u
			})
		case [][]byte:
			args[i] = pgtype.FlatArray[[]byte](list)
		case []*int64:
			args[i] = pgtype.FlatArray[*int64](list)
		case []*string:
			args[i] = pgtype.FlatArray[*string](list)
		}
	}
	return args
}

func uuids[T any](list []T, uuid func(T) pgtype.UUID) pgtype.FlatArray[pgtype.UUID] {
	column := make(pgtype.FlatArray[pgtype.UUID], len(list))
	for i, id := range list {
		column[i] = uuid(id)
	}
	return column
}
