// Package sqlite keeps a store in one SQLite file, which several processes on one machine may share.
//
//	s, err := sqlite.Open(ctx, "app.db", sqlite.Options{})
//
// # Files
//
// Beside the file PATH lie, while it is used, SQLite's own PATH-wal and PATH-shm, and those of this package: PATH-lock, the writers'
// turn; PATH-beats, the heartbeats and leases (set aside as PATH-beats.damaged and made anew where they cannot be read; whoever still has
// the old one open is told at his next heartbeat that it confirms nothing); PATH-workers, a directory of proofs of life. The file must have
// one name: by a second one (a hard link) it would be written past these. Where PATH comes to be another file or none, nothing more is
// written. To copy a store while it is used, use SQLite's own means (VACUUM INTO, .backup); to move it, close it everywhere and take PATH
// along with PATH-wal, if that is there.
//
// # Durability
//
// A commit that was answered is on the disk, as far as the disk tells the truth: write-ahead log, synchronous=FULL. With
// [SynchronousNormal] a power cut may take the newest commits; what is left is a whole and consistent store as it was earlier.
//
// # Turns
//
// SQLite has one writer at a time and its own waiting is unfair, so a writer takes its turn by an OS lock on PATH-lock first. A
// process that is stopped (not ended) in the middle of a commit stops all writers until it goes on or ends.
//
// # Retention
//
// A prune is one commit: the oldest events go, with their commits, the contents of the messages that ended there and the keys that are over.
// Some 5,000 events take tens of milliseconds, during which other writers wait. The room is used by the events to come; what is left of it
// beyond a quarter of the file is given back to the file system after each prune, 2 MiB at a time, in commits of its own. So the file is about as large
// as what it keeps. A file that was not made by [Open] (restored from a dump, say) may lack what that needs: it never grows while there is
// room in it, but does not shrink either; [Store.Space] tells, and [Store.Compact] writes it anew, which also is the way to have a file small at once
// after much has gone.
//
// A commit id is known for 24 hours, whatever the retention: asked for again after its events have gone, it is store.ErrPruned, and
// Outcome says that it was committed. Damage in what is pruned goes with it, but a row that cannot be read keeps its events: nothing else tells
// what it was.
//
// What is erased is written over in the file at once. The write-ahead log still has it until it is taken home and begins anew, some commits later
// or when the last process closes the store; so has every copy that was made before.
//
// # Checkpoints
//
// Those of durable projections lie in the store's own file, so that a copy has both or neither. Saving one takes its turn among writers, for as
// long as one row takes.
//
// # Versions
//
// Open brings a store of an earlier schema to this one. A program of an earlier version that still has it open then is refused, and so is one that
// opens it later: the error names both versions, and nothing is half read or half written. So stop the old ones first, or let them fail and start
// the new.
//
// # Reading it by hand
//
// The views log and queue show the events and the kept messages in words; through in the table pruned is the last position that has gone:
//
//	sqlite3 app.db 'SELECT position, at, entity, type, body FROM log ORDER BY position DESC LIMIT 20'
package sqlite
