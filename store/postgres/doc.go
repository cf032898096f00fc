// Package postgres is the engine that keeps a store in a schema of a Postgres database, 14 or newer, which any number of processes share.
//
//	s, err := postgres.Open(ctx, "postgres://app@db.example/app", postgres.Options{})
//
// Open makes the schema, which is called foundling unless the options say otherwise, and brings an older one to this version; [Migrate] does so alone,
// for a role that may, and Options.NoMigrate is for processes whose role may not. The role that opens a store needs no more than to own that schema.
// Nothing lies in any other schema, and no statement has a name or leaves a setting behind, so a pooler that gives each transaction another
// connection (PgBouncer) may stand between; hints and migrations want a direct one.
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
// trips delays the others by no more than that. One that is stopped while it sends holds what it has until its connection ends.
//
// # What is certain
//
// A commit is answered when the server says that it is on the disk, in whatever sense its synchronous_commit has. Where the answer is lost, Decide says
// store.ErrUnknown, and Outcome settles it. Time is the server's.
package postgres
