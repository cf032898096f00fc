-- +goose Up

-- Up to where the beginning of the log was let go, which is the position of the last event that went, and when the newest of its commits was
-- decided. No row while all is kept. checksum is a CRC-32C over both.
CREATE TABLE pruned (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  through  INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- The newest event of each entity that says all of its state, and has not gone. stream is as in events.
CREATE TABLE snapshots (
  position INTEGER PRIMARY KEY,
  stream   ANY NOT NULL
) STRICT;

CREATE UNIQUE INDEX snapshots_stream ON snapshots (stream);

-- The place of each message whose first event has gone while it had others that were kept: where its payload lies. topic is its topic, which
-- that event told; empty where it could not be read.
CREATE TABLE places (
  message BLOB PRIMARY KEY,
  place   INTEGER NOT NULL,
  topic   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Results of messages. position is that of the event that says that it completed, with which it goes.
CREATE TABLE results (
  position INTEGER PRIMARY KEY,
  salt     BLOB NOT NULL,
  bytes    BLOB NOT NULL
) STRICT;

-- What durable projections had come to. digest is a CRC-32C over the view, checksum one over all the rest and the digest.
CREATE TABLE checkpoints (
  id       INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  version  INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  cursor   TEXT NOT NULL,
  at       INTEGER NOT NULL,
  digest   INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  view     BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX checkpoints_name ON checkpoints (name, version, sequence);

-- Keys that are kept for a time beyond the end of their message.
CREATE INDEX keys_over ON keys (until) WHERE open = 0;

-- A program of an earlier version that has the store open, and knows nothing of a log without a beginning, must write no more. It writes
-- the id of each of its commits here.
ALTER TABLE commit_ids RENAME TO used_ids;

CREATE VIEW commit_ids AS SELECT id, first FROM used_ids;

-- +goose StatementBegin
CREATE TRIGGER commit_ids_of_earlier_versions INSTEAD OF INSERT ON commit_ids BEGIN
  SELECT RAISE(ABORT, 'the store was brought to schema version 3 while this program, which knows version 2, had it open: stop it and start its newer version');
END;
-- +goose StatementEnd
