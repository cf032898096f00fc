-- +goose Up

-- The schema that this runs in is made by whoever runs it; every statement of the engine names it. Times are microseconds since 1970, and checksums
-- CRC-32Cs as signed numbers, as in the engine on SQLite. Names are in the order of their bytes, whatever the database's own order is.

CREATE TABLE meta (
  name  text COLLATE "C" PRIMARY KEY,
  value text COLLATE "C" NOT NULL
);

-- A transaction that keeps events draws one number, after all that it decides by is held. The position of its i-th event is number * 16384 + i.
CREATE SEQUENCE blocks AS bigint CACHE 1 NO CYCLE;

-- Numbers above every token that a permit ever had: from each, 16384 tokens may be given.
CREATE SEQUENCE fences AS bigint CACHE 1 NO CYCLE;

-- The log. Only appended to. stream is the 16 bytes of a message's id, and kind/id or kind/name as text for everything else; version is NULL where
-- the event moves nothing. body is in shorthand, and its checksum that of the text.
CREATE TABLE events (
  position   bigint   NOT NULL,
  version    integer,
  type       smallint NOT NULL,
  schema     smallint NOT NULL,
  from_state smallint NOT NULL,
  to_state   smallint NOT NULL,
  checksum   integer  NOT NULL,
  stream     bytea    NOT NULL,
  body       bytea    NOT NULL
) PARTITION BY RANGE (position);

-- What the events of one transaction share: the commits of its calls, one behind the other, each with the number of its events. at is for people.
CREATE TABLE decisions (
  number   bigint  NOT NULL,
  at       bigint  NOT NULL,
  events   integer NOT NULL,
  checksum integer NOT NULL,
  commits  bytea   NOT NULL
) PARTITION BY RANGE (number);

-- The times in which nothing of the log was lost. One begins whenever the server was started, or is another one, since it may have lost the newest commits
-- (a backup was restored, a replica took over): at "begin", the position of the newest event that there was, before anything else was appended. "id" is
-- in the cursors to positions behind that, and empty for the first. "server" tells one start from another; "history" is for people: the server's system
-- identifier and timeline. "at" is a time by the store's clock. "fences" is added to what is drawn of the sequence fences.
CREATE TABLE epochs (
  ordinal integer PRIMARY KEY,
  begin   bigint NOT NULL,
  at      bigint NOT NULL,
  id      text COLLATE "C" NOT NULL,
  server  text COLLATE "C" NOT NULL,
  history text COLLATE "C" NOT NULL,
  fences  bigint NOT NULL
);

-- Ranges of the log that have tables, by the numbers of their transactions: lower <= number < upper, in events_N and decisions_N with N = lower.
-- They are made ahead; begun_at is a time, by the server's clock, at which the first of the numbers was drawn already, NULL while nobody has
-- noticed that one was. Only within a range does the server see to it that no version of an entity stands twice.
CREATE TABLE ranges (
  lower    bigint PRIMARY KEY,
  upper    bigint NOT NULL,
  begun_at bigint
);

-- The ids of recent commits, with the place of each among the commits of its transaction; number is 0 for an id that was given up.
CREATE TABLE used_ids (
  id      uuid     PRIMARY KEY,
  number  bigint   NOT NULL,
  ordinal smallint NOT NULL
);

-- Up to where the log is final, for readers on a standby: a number of blocks.
CREATE TABLE log_head (
  id   smallint PRIMARY KEY CHECK (id = 1),
  safe bigint   NOT NULL
) WITH (fillfactor = 10);

-- Messages that are open or dead letters. place is the position of the message's first event: its place in the queue. due is set while it is queued,
-- worker and claimed_at while a claim is open, waiting 1 while it is blocked, 2 while it was sent to try again and has not. What a claim leaves as it
-- is stands first, and there is room for the row that it writes beside the old one: Postgres then logs what is behind. fields is in shorthand.
CREATE TABLE messages (
  place      bigint   NOT NULL,
  id         uuid     PRIMARY KEY,
  priority   smallint NOT NULL,
  topic      text COLLATE "C" NOT NULL,
  due        bigint,
  claimed_at bigint,
  lock_token bigint,
  version    integer  NOT NULL,
  state      smallint NOT NULL,
  waiting    smallint NOT NULL,
  counted    boolean  NOT NULL,
  worker     uuid,
  lock       text COLLATE "C",
  fields     bytea    NOT NULL
) WITH (fillfactor = 42, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX messages_claimable ON messages (topic, priority, due, place) WHERE due IS NOT NULL;
CREATE INDEX messages_running ON messages (worker, claimed_at, id) WHERE worker IS NOT NULL;
CREATE INDEX messages_waiting ON messages (lock, topic, waiting, priority, place) WHERE waiting <> 0;

-- running is how many open claims count towards the topic's limit.
CREATE TABLE topics (
  name    text COLLATE "C" PRIMARY KEY,
  version integer  NOT NULL,
  state   smallint NOT NULL,
  running integer  NOT NULL,
  fields  bytea    NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE workers (
  id      uuid     PRIMARY KEY,
  version integer  NOT NULL,
  state   smallint NOT NULL,
  fields  bytea    NOT NULL
);

CREATE TABLE locks (
  name    text COLLATE "C" PRIMARY KEY,
  version integer  NOT NULL,
  state   smallint NOT NULL,
  fields  bytea    NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE leaders (
  name    text COLLATE "C" PRIMARY KEY,
  version integer  NOT NULL,
  state   smallint NOT NULL,
  fields  bytea    NOT NULL
);

CREATE TABLE clocks (
  name    text COLLATE "C" PRIMARY KEY,
  version integer  NOT NULL,
  state   smallint NOT NULL,
  fields  bytea    NOT NULL
);

CREATE TABLE keys (
  topic   text COLLATE "C" NOT NULL,
  name    text COLLATE "C" NOT NULL,
  message uuid    NOT NULL,
  open    boolean NOT NULL,
  until   bigint,
  PRIMARY KEY (topic, name)
);

CREATE INDEX keys_over ON keys (until) WHERE NOT open;

-- The permits of locks that are out. message is NULL where one is held without a message, expires_at where it has no end.
CREATE TABLE permits (
  lock        text COLLATE "C" NOT NULL,
  token       bigint NOT NULL,
  worker      uuid   NOT NULL,
  message     uuid,
  acquired_at bigint NOT NULL,
  expires_at  bigint,
  PRIMARY KEY (lock, token)
);

CREATE INDEX permits_worker ON permits (worker, acquired_at, lock, token);
CREATE INDEX permits_lock ON permits (lock, expires_at, acquired_at, token);
CREATE INDEX permits_expiring ON permits (expires_at) WHERE expires_at IS NOT NULL;

-- Payloads outlive the rows of their messages: place is that of the message. Results go with the event that says that the message completed.
CREATE TABLE payloads (
  place bigint PRIMARY KEY,
  salt  bytea  NOT NULL,
  bytes bytea  NOT NULL
);

CREATE TABLE results (
  position bigint PRIMARY KEY,
  salt     bytea  NOT NULL,
  bytes    bytea  NOT NULL
);

-- Up to where the beginning of the log was let go, and when the newest of its commits was decided, or went where that was earlier. No row while all
-- is kept.
CREATE TABLE pruned (
  id       smallint PRIMARY KEY CHECK (id = 1),
  through  bigint   NOT NULL,
  at       bigint   NOT NULL,
  checksum integer  NOT NULL
);

-- The newest event of each entity that says all of its state, and has not gone.
CREATE TABLE snapshots (
  stream   bytea  PRIMARY KEY,
  position bigint NOT NULL
);

CREATE INDEX snapshots_position ON snapshots (position);

-- The place of each message whose first event has gone while it had others that were kept: where its payload lies. topic is its topic, which that
-- event told; empty where it could not be read.
CREATE TABLE places (
  place   bigint NOT NULL,
  message uuid   PRIMARY KEY,
  topic   text COLLATE "C" NOT NULL
);

-- What durable projections had come to.
CREATE TABLE checkpoints (
  name     text COLLATE "C" NOT NULL,
  version  bigint  NOT NULL,
  sequence bigint  NOT NULL,
  at       bigint  NOT NULL,
  digest   integer NOT NULL,
  checksum integer NOT NULL,
  cursor   text COLLATE "C"    NOT NULL,
  view     bytea   NOT NULL,
  PRIMARY KEY (name, version, sequence)
);

-- Heartbeats and leases, which are written past the commits.
CREATE TABLE beats (
  worker      uuid    PRIMARY KEY,
  at          bigint  NOT NULL,
  every       bigint  NOT NULL,
  fence_after bigint  NOT NULL,
  checksum    integer NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE leases (
  name     text COLLATE "C" PRIMARY KEY,
  holder   uuid    NOT NULL,
  term     bigint  NOT NULL,
  until    bigint  NOT NULL,
  life     bigint  NOT NULL,
  swept    bigint,
  checksum integer NOT NULL
) WITH (fillfactor = 50);

-- Messages that transactions of users' own have staged, each until it is moved into the log. place is the order of staging. Whoever may do no more than
-- insert here may enqueue.
CREATE TABLE staged (
  place    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       bigint  NOT NULL,
  checksum integer NOT NULL,
  id       uuid    NOT NULL,
  topic    text COLLATE "C" NOT NULL,
  draft    bytea   NOT NULL,
  salt     bytea   NOT NULL,
  bytes    bytea   NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX staged_id ON staged (id);

-- Words for people: kind is 'type', 'state' or 'priority'.
CREATE TABLE words (
  kind text COLLATE "C"     NOT NULL,
  code smallint NOT NULL,
  word text COLLATE "C"     NOT NULL,
  PRIMARY KEY (kind, code)
);

-- must raises where fewer rows were hit than a commit stands on: what it was decided by has moved.
-- +goose StatementBegin
CREATE FUNCTION must(hit bigint, want bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF hit <> want THEN
    RAISE EXCEPTION 'foundling: % of % rows are as they were', hit, want USING ERRCODE = 'FD001';
  END IF;
END $$;
-- +goose StatementEnd


-- within raises where a number lies in no range that whoever drew it knows.
-- +goose StatementBegin
CREATE FUNCTION within(number bigint, lower bigint, upper bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF number < lower OR number >= upper THEN
    RAISE EXCEPTION 'foundling: number % is not in the range from % to %', number, lower, upper USING ERRCODE = 'FD002';
  END IF;
END $$;
-- +goose StatementEnd

-- started raises where the server is not the one whose start was written down: its log may have lost its end.
-- +goose StatementBegin
CREATE FUNCTION started(server text, noted text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF server <> noted THEN
    RAISE EXCEPTION 'foundling: the server was started, which nobody has written down yet' USING ERRCODE = 'FD003';
  END IF;
END $$;
-- +goose StatementEnd
