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
// # Reading it by hand
//
// The views log and queue show the events and the kept messages in words:
//
//	sqlite3 app.db 'SELECT position, at, entity, type, body FROM log ORDER BY position DESC LIMIT 20'
package sqlite
