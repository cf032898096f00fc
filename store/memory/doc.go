// Package memory keeps a store in this process: for tests, and for work that may die with its process.
//
//	s := memory.New(memory.Options{})
//	defer s.Close()
//	client, err := foundling.NewClient(s, foundling.ClientOptions{})
//
// It is a whole engine: log, rows, heartbeats, leases, checkpoints, pruning. It keeps stored bytes as other engines do, checksums and all, so that what
// passes on it passes elsewhere; and it is the shortest engine to read before you write one.
//
// # What it has not
//
// Several processes: everybody who shares it has the same [Store]. Proof of death: whoever dies takes the store along. A bound on its size: what
// is enqueued and not handled is in memory, and so is the log for as long as retention says.
//
// # Time
//
// Its time is time.Now, so that it runs in a bubble of testing/synctest as it is, or that of [Options].Clock. A clock that somebody else moves is
// read under the store's mutex: it must not call the store.
package memory
