package main

import (
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// proofless is a store as it is in a network file system: nobody can prove there that a process has ended, so that who is dead shows by
// silence alone. It has every power of the store but that one, and no Unwrap by which [store.As] would find it. The demonstration opens its
// stores so, since what a sweep makes sure of is seen best where it has to doubt.
type proofless struct {
	store.Store
	store.Heart
	store.Leaser
	store.Waiter
}

func withoutProof(s *sqlite.Store) store.Store {
	return proofless{Store: s, Heart: s, Leaser: s, Waiter: s}
}
