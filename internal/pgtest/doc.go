// Package pgtest gives tests a Postgres: a fresh database each, a server of their own to kill, and a proxy that counts and cuts.
//
//	dsn := pgtest.Database(t)                     // empty, gone after the test
//	dsn := migrated.Database(t)                   // from a Template, which the first to ask for it makes
//	dsn := migrated.Borrowed(t)                   // the same, used before and emptied since: for tests by the hundred
//	srv := pgtest.NewServer(t, pgtest.Options{})  // for tests that kill it: srv.Kill9, srv.Start, srv.DSN
//	standby := srv.Standby(t)                     // follows srv and answers reads: standby.CatchUp, srv.Kill9, standby.Promote
//	srv.Save(); srv.Kill9(); srv.Restore()        // a backup of its files; pgtest.Dump copies a database as pg_dump does
//	proxy := pgtest.NewProxy(t, dsn)              // proxy.DSN, proxy.Counts, proxy.Inject
//	bouncer := pgtest.NewBouncer(t, dsn, 4)       // a PgBouncer: bouncer.DSN(dsn)
//
// # Where the server is
//
// Databases are on one server: that of FOUNDLING_POSTGRES, which ./test sets; else that of DATABASE_URL; else one that the first
// to ask starts from the binaries of this machine (FOUNDLING_POSTGRES_BIN, PATH, the usual folders, pg_config) and that ends with
// this process, in whatever way it ends. Where FOUNDLING_ENGINES is set and does not name postgres, tests that ask for one are
// skipped; where there is none, they fail and say what brings one.
//
// A test's role is no superuser, makes no roles or databases, and owns its database. All tests of a server share it. Admin gives the
// same database for who may do everything.
//
// A server that was started here has its own data directory in the temporary folder, listens on loopback with a password and on
// a socket in that directory, and runs as postgres or nobody where the tests run as root, since Postgres refuses to be root. Its
// texts are not ordered by their bytes, which is what most servers are like: what needs that order asks for it.
package pgtest
