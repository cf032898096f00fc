// Package postgres is the engine that keeps a store in a schema of a Postgres database, 14 or newer, which any number of processes share.
//
//	s, err := postgres.Open(ctx, "postgres://app@db.example/app", postgres.Options{})
//
// Open makes the schema, which is called foundling unless the options say otherwise, and brings an older one to this version; [Migrate] does so alone,
// for a role that may, and Options.NoMigrate is for processes whose role may not. The role that opens a store needs no more than to own that schema.
// Nothing lies in any other schema.
//
// # Roles and poolers
//
// A role that enqueues and works needs no right to make anything:
//
//	GRANT USAGE ON SCHEMA foundling TO worker;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA foundling TO worker;
//	GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA foundling TO worker;
//
// Some process whose role owns the schema must work beside it, or [Migrate] be run now and then: it makes the next ranges of the log, some million
// transactions ahead, and takes away those that were let go.
//
// No statement has a name or leaves a setting behind, so a pooler that gives each transaction another connection (PgBouncer in transaction mode) may
// stand between; migrations and hints from other processes take Options.Direct, which leads past it. Heartbeats take the pooler as commits do. No statement
// is called off behind a pooler, since some versions of PgBouncer end by that: it goes on until its time-outs end it.
//
// # What is written where
//
// Everything is in the log: a row for each event in a table that is partitioned by position, and one for each transaction with what its events share.
// What is open has a row of its own besides, by which claims and looks find it, written in the transaction of the event that says so. A transaction
// draws one number when it holds all that it decided by, and its events stand at positions made of that number. So positions rise with the
// versions of every entity, and they have gaps.
//
// # How a commit holds what it decides by
//
// Rows are held by row locks, and what has no row by advisory locks of the transaction, whose keys come from the name of the schema. All are taken in one
// order, so that commits wait for each other and never in a circle: keys, messages by id, topics by name. Claims wait for nobody: they take
// messages, and locks of messages, that nobody has, and leave the others to the next claim.
//
// A commit of what its caller knows, and of new messages, takes one round trip to the server; a claim takes two, and one more where its messages
// have locks. Locks, statements and transactions that wait for their client are bounded (see [Options]): a process that is stopped between two round
// trips delays the others by no more than that. One that is stopped while it sends is bounded from Postgres 17 on, by three times WriteTimeout; before, it
// holds what it has until its connection ends.
//
// # Enqueueing in a transaction of the caller's own
//
// [EnqueueTx] and [EnqueueSQLTx] enqueue in the transaction that changes the caller's own tables in the same database: the messages are there exactly
// when it commits.
//
//	tx, err := pool.Begin(ctx)
//	…
//	_, err = tx.Exec(ctx, "INSERT INTO orders …")
//	ids, err := postgres.EnqueueTx(ctx, client, tx, receipts.Draft(receipt, foundling.EnqueueOptions{Key: number}))
//	err = tx.Commit(ctx)
//
// Such a transaction may stay open for long, so it does not touch the log, whose readers would have to wait for it: it stages the messages in a table
// of their own. After its commit workers move what they see into the log, each of them in the order of staging, each with its row in one transaction, so that it is
// there once whoever moves it and whenever he is killed. Claims take no part in that: one worker of each process looks for what is staged once a second
// while there is nothing, and at once when the commit of one that staged something says so, by a notification in the caller's transaction that a
// process sends once a second at most. Commits that notify take turns in all of the database, and what is to be prepared must not notify at all:
// Options.NoNotify sends none. A process that only enqueues needs a store of [Unconnected] and the right to insert into that table.
//
// # What is certain
//
// A commit is answered when the server says that it is on the disk, in whatever sense its synchronous_commit has; where that is off, as if it were
// local. Where the answer is lost, Decide says store.ErrUnknown, and Outcome settles it. Time is the server's.
//
// A server that was restored from a backup, or took over from another without the newest commits, goes on at positions that somebody has read past. The
// first commit after each start of a server writes down where the log ended then (table epochs), and a cursor that has passed what is not in the log any
// more is refused with store.ErrAhead, however far the log has come since. On a standby reads go up to what was found to be final on its primary, and
// writes are refused.
package postgres
