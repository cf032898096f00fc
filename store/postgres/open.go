package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// statements is how many texts of statements a connection remembers: more than there are.
const statements = 512

// applicationName is what people who look at the server's connections see.
const applicationName = "foundling"

// Open opens the store in a schema of the database that a connection string names, and makes it where it does not exist. A schema that holds something
// else is store.ErrForeign; one of a newer version is store.ErrNewer.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	s, err := connect(ctx, dsn, o)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	if err := s.open(ctx); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("postgres: open %s: %w", s, s.classed(err))
	}
	s.openPowers()
	return s, nil
}

// Migrate makes the schema, or brings it to this version, and does no more: for a role that may, before those that may not open the store.
func Migrate(ctx context.Context, dsn string, o Options) error {
	o.NoMigrate = false
	s, err := connect(ctx, dsn, o)
	if err != nil {
		return fmt.Errorf("postgres: migrate: %w", err)
	}
	defer s.pool.Close()
	if _, err = s.inspect(ctx); err == nil {
		err = s.keepRanges(ctx)
	}
	if err != nil {
		return fmt.Errorf("postgres: migrate %s: %w", s, s.classed(err))
	}
	return nil
}

// connect is a store that nobody has looked at yet.
func connect(ctx context.Context, dsn string, o Options) (*Store, error) {
	o, err := o.settled()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	config, err := configure(dsn, o)
	if err != nil {
		return nil, err
	}
	direct := config
	if o.Direct != "" {
		if direct, err = configure(o.Direct, o); err != nil {
			return nil, fmt.Errorf("option Direct: %w", err)
		}
	}
	s := &Store{
		config: config.ConnConfig, direct: direct.ConnConfig, prefix: pgx.Identifier{o.Schema}.Sanitize() + ".", options: o, closing: make(chan struct{}),
		desk: newDesk(o),
	}
	config.ConnConfig.OnNotice = s.warnings.take
	config.ConnConfig.OnNotification = ignored
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		s.pooler.hold(c)
		if s.pooler.none.Load() {
			c.DefaultQueryExecMode, c.StatementCacheCapacity = pgx.QueryExecModeCacheStatement, statements
		}
		return nil
	}
	config.AfterConnect = s.own
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	return s, nil
}

// ignored is a notification that comes over a connection which nobody listens on: a pooler gave it one that somebody else had listened on. They
// would be kept for ever.
func ignored(*pgconn.PgConn, *pgconn.Notification) {}

// configure reads a connection string. What is wrong with it is not repeated: it may have a password.
func configure(dsn string, o Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: want postgres://user@host:port/database?setting=value, or host=… port=… dbname=… user=…", ErrDSN)
	}
	config.MaxConns = int32(o.MaxConns)
	config.MinConns = 0
	c := config.ConnConfig
	// Statements have no names until it is known that there is no pooler, which may give each transaction another connection.
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.StatementCacheCapacity, c.DescriptionCacheCapacity = 0, statements
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = applicationName
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	return config, nil
}

// String says where the store is, and no secret.
func (s *Store) String() string {
	c := s.config
	return fmt.Sprintf("%s/%s schema %s", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), c.Database, s.options.Schema)
}

// open makes what is not there, checks what is, and learns what every commit needs to know.
func (s *Store) open(ctx context.Context) error {
	if err := s.findPooler(ctx); err != nil {
		return err
	}
	standby, err := s.inspect(ctx)
	if err != nil {
		return err
	}
	if err := s.checkSequences(ctx); err != nil {
		return err
	}
	if s.id, err = s.identity(ctx, standby); err != nil {
		return err
	}
	if standby {
		return errors.Join(s.loadEpochs(ctx), s.loadRanges(ctx))
	}
	err = s.recognize(ctx)
	if code(err) == codeDenied || code(err) == codeReadOnly { // whoever writes does so
		err = s.loadEpochs(ctx)
	}
	if err != nil {
		return err
	}
	err = s.keepRanges(ctx)
	if code(err) == codeDenied || code(err) == codeReadOnly { // others make them
		return s.loadRanges(ctx)
	}
	return err
}

// Close implements store.Store. Calls under way are waited for.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.mu.Unlock()
	s.calls.Wait()
	s.closePowers()
	s.pool.Close()
	return nil
}

// committed tells of a commit whoever waits for it.
func (s *Store) committed(woken []string, _ []events.ID) { s.powers.hints.hint(woken) }

// warnings is what the server has said of commits whose answer is not to be believed.
type warnings struct {
	mu   sync.Mutex
	said map[*pgconn.PgConn]*pgconn.PgError
}

// codeWarning is that of a commit that the server has written down, and does not know to have reached a standby that it should have: whoever waited
// for that was called off.
const codeWarning = "01000"

func (w *warnings) take(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code != codeWarning {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said == nil {
		w.said = map[*pgconn.PgConn]*pgconn.PgError{}
	}
	w.said[conn] = (*pgconn.PgError)(n)
}

// clear is the warning since the last call; nil where there was none.
func (w *warnings) clear(conn *pgconn.PgConn) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	said, ok := w.said[conn]
	delete(w.said, conn)
	if !ok {
		return nil
	}
	return said
}
