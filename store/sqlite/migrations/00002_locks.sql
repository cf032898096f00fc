-- +goose Up

-- lock is what a message's claim takes, lock_token the permit that its open claim took; both NULL where there is none. waiting is 1 while
-- the message is blocked, 2 while it was sent to try again and has not, 0 otherwise.
ALTER TABLE messages ADD COLUMN lock TEXT;
ALTER TABLE messages ADD COLUMN lock_token INTEGER;
ALTER TABLE messages ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;

CREATE INDEX messages_waiting ON messages (lock, topic, waiting, priority, place) WHERE waiting <> 0;

-- Locks that are held or were configured. A free one that nobody configured has no row: its newest event says all of it.
CREATE TABLE locks (
  name    TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  state   INTEGER NOT NULL,
  fields  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Who leads, as the log has it. Whether that is still true the lease says, in the file of heartbeats.
CREATE TABLE leaders (
  name    TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  state   INTEGER NOT NULL,
  fields  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The store's clock, once it has stepped.
CREATE TABLE clocks (
  name    TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  state   INTEGER NOT NULL,
  fields  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The permits of locks that are out. message is NULL where one is held without a message, expires_at where it has no end.
CREATE TABLE permits (
  lock        TEXT NOT NULL,
  token       INTEGER NOT NULL,
  worker      BLOB NOT NULL,
  message     BLOB,
  acquired_at INTEGER NOT NULL,
  expires_at  INTEGER,
  PRIMARY KEY (lock, token)
) STRICT, WITHOUT ROWID;

CREATE INDEX permits_worker ON permits (worker, acquired_at, lock, token);
CREATE INDEX permits_lock ON permits (lock, expires_at, acquired_at, token);
CREATE INDEX permits_expiring ON permits (expires_at) WHERE expires_at IS NOT NULL;

DROP VIEW queue;

CREATE VIEW queue AS
SELECT
  lower(
    substr(hex(m.id), 1, 8) || '-' || substr(hex(m.id), 9, 4) || '-' || substr(hex(m.id), 13, 4) || '-' ||
    substr(hex(m.id), 17, 4) || '-' || substr(hex(m.id), 21)) AS message,
  m.place,
  m.topic,
  (SELECT word FROM words WHERE kind = 'priority' AND code = m.priority) AS priority,
  (SELECT word FROM words WHERE kind = 'state' AND code = m.state) AS state,
  m.lock,
  strftime('%Y-%m-%dT%H:%M:%f', m.due / 1000000.0, 'unixepoch') || 'Z' AS due,
  lower(hex(m.worker)) AS worker,
  strftime('%Y-%m-%dT%H:%M:%f', m.claimed_at / 1000000.0, 'unixepoch') || 'Z' AS claimed_at,
  m.version,
  CAST(m.fields AS TEXT) AS fields,
  CAST(p.bytes AS TEXT) AS payload
FROM messages m
LEFT JOIN payloads p ON p.place = m.place;
