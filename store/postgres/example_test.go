package postgres_test

import (
	"context"
	"database/sql"
	"errors"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Receipt is the payload of the examples.
type Receipt struct{ User, Order string }

var receipts = foundling.NewTopic[Receipt]("receipts", foundling.TopicOptions{Limit: 2})

// The order and its receipt are there together, or neither is.
func ExampleEnqueueTx() {
	place := func(ctx context.Context, pool *pgxpool.Pool, client *foundling.Client, r Receipt) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders (number, by) VALUES ($1, $2)", r.Order, r.User); err != nil {
				return err
			}
			_, err := postgres.EnqueueTx(ctx, client, tx, receipts.Draft(r, foundling.EnqueueOptions{Key: r.Order}))
			return err
		})
	}
	_ = place
}

// The same with database/sql, whatever the driver.
func ExampleEnqueueSQLTx() {
	place := func(ctx context.Context, db *sql.DB, client *foundling.Client, r Receipt) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number, by) VALUES ($1, $2)", r.Order, r.User); err != nil {
			return err
		}
		if _, err := postgres.EnqueueSQLTx(ctx, client, tx, receipts.Draft(r, foundling.EnqueueOptions{Key: r.Order})); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = place
}

// A process that only enqueues, in transactions of its own connections, needs no connection of Foundling's and no right but to insert:
//
//	GRANT USAGE ON SCHEMA foundling TO shop; GRANT INSERT ON foundling.staged TO shop;
func ExampleUnconnected() {
	client := func() (*foundling.Client, error) {
		store, err := postgres.Unconnected(postgres.Options{})
		if err != nil {
			return nil, err
		}
		return foundling.NewClient(store, foundling.ClientOptions{Actor: "shop"})
	}
	c, err := client()
	if err != nil {
		return
	}
	if _, err := c.Head(context.Background()); errors.Is(err, postgres.ErrUnconnected) {
		return // it does no more than EnqueueTx
	}
}
