-- +goose Up

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The log. Only appended to. stream is the 16 bytes of a message's id, and kind/id or kind/name as text for everything else;
-- version is NULL where the event moves nothing; the words for type and state are in the table words, and the view log shows them.
CREATE TABLE events (
  position   INTEGER PRIMARY KEY AUTOINCREMENT,
  stream     ANY NOT NULL,
  version    INTEGER,
  type       INTEGER NOT NULL,
  schema     INTEGER NOT NULL,
  from_state INTEGER NOT NULL,
  to_state   INTEGER NOT NULL,
  body       BLOB NOT NULL,
  checksum   INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_stream ON events (stream, version);

-- What the events of one commit share. first is the position of its first event, at is microseconds since 1970.
CREATE TABLE commits (
  first    INTEGER PRIMARY KEY,
  id       BLOB NOT NULL,
  at       INTEGER NOT NULL,
  count    INTEGER NOT NULL,
  body     BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- The ids of recent commits; first is 0 for an id that was given up.
CREATE TABLE commit_ids (
  id    BLOB PRIMARY KEY,
  first INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Messages that are open or dead letters. place is the position of the message's first event: its place in the queue. due is set
-- while it is queued, worker and claimed_at while a claim is open.
CREATE TABLE messages (
  place      INTEGER PRIMARY KEY,
  id         BLOB NOT NULL,
  version    INTEGER NOT NULL,
  state      INTEGER NOT NULL,
  topic      TEXT NOT NULL,
  priority   INTEGER NOT NULL,
  due        INTEGER,
  worker     BLOB,
  claimed_at INTEGER,
  counted    INTEGER NOT NULL,
  fields     BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX messages_id ON messages (id);
CREATE INDEX messages_claimable ON messages (topic, priority, due, place) WHERE due IS NOT NULL;
CREATE INDEX messages_running ON messages (worker, claimed_at, id) WHERE worker IS NOT NULL;

-- running is how many open claims count towards the topic's limit.
CREATE TABLE topics (
  name    TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  state   INTEGER NOT NULL,
  running INTEGER NOT NULL,
  fields  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
  id      BLOB PRIMARY KEY,
  version INTEGER NOT NULL,
  state   INTEGER NOT NULL,
  fields  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
  topic   TEXT NOT NULL,
  name    TEXT NOT NULL,
  message BLOB NOT NULL,
  open    INTEGER NOT NULL,
  until   INTEGER,
  PRIMARY KEY (topic, name)
) STRICT, WITHOUT ROWID;

-- Payloads outlive the rows of their messages. place is that of the message, the position of its message.enqueued.
CREATE TABLE payloads (
  place INTEGER PRIMARY KEY,
  salt  BLOB NOT NULL,
  bytes BLOB NOT NULL
) STRICT;

-- Words for people: kind is 'type', 'state' or 'priority'.
CREATE TABLE words (
  kind TEXT NOT NULL,
  code INTEGER NOT NULL,
  word TEXT NOT NULL,
  PRIMARY KEY (kind, code)
) STRICT, WITHOUT ROWID;

CREATE VIEW log AS
SELECT
  e.position,
  strftime('%Y-%m-%dT%H:%M:%f', c.at / 1000000.0, 'unixepoch') || 'Z' AS at,
  CASE typeof(e.stream) WHEN 'text' THEN e.stream ELSE 'message/' || lower(
    substr(hex(e.stream), 1, 8) || '-' || substr(hex(e.stream), 9, 4) || '-' || substr(hex(e.stream), 13, 4) || '-' ||
    substr(hex(e.stream), 17, 4) || '-' || substr(hex(e.stream), 21)) END AS entity,
  e.version,
  (SELECT word FROM words WHERE kind = 'state' AND code = e.from_state) AS from_state,
  (SELECT word FROM words WHERE kind = 'state' AND code = e.to_state) AS to_state,
  coalesce((SELECT word FROM words WHERE kind = 'type' AND code = e.type), e.type) AS type,
  CAST(e.body AS TEXT) AS body,
  CAST(c.body AS TEXT) AS command,
  c.first AS commit_first
FROM events e
LEFT JOIN commits c ON c.first = (SELECT max(first) FROM commits WHERE first <= e.position);

CREATE VIEW queue AS
SELECT
  lower(
    substr(hex(m.id), 1, 8) || '-' || substr(hex(m.id), 9, 4) || '-' || substr(hex(m.id), 13, 4) || '-' ||
    substr(hex(m.id), 17, 4) || '-' || substr(hex(m.id), 21)) AS message,
  m.place,
  m.topic,
  (SELECT word FROM words WHERE kind = 'priority' AND code = m.priority) AS priority,
  (SELECT word FROM words WHERE kind = 'state' AND code = m.state) AS state,
  strftime('%Y-%m-%dT%H:%M:%f', m.due / 1000000.0, 'unixepoch') || 'Z' AS due,
  lower(hex(m.worker)) AS worker,
  strftime('%Y-%m-%dT%H:%M:%f', m.claimed_at / 1000000.0, 'unixepoch') || 'Z' AS claimed_at,
  m.version,
  CAST(m.fields AS TEXT) AS fields,
  CAST(p.bytes AS TEXT) AS payload
FROM messages m
LEFT JOIN payloads p ON p.place = m.place;
