package postgres

import (
	"errors"
	"sync"

	"github.com/foundling-go/foundling/store"
)

// A claim from topics in which the last one has found nothing is most likely to find nothing either. It begins with a glance: what it would hold is
// read in a transaction that ends in the same round trip. Where that is enough to decide that nothing changes, so be it; else it is decided anew, holding
// what it reads. So an idle worker asks once for each look, and whoever has work to do asks no more often than before.

// errGlanced says that what a glance has seen is to be held.
var errGlanced = errors.New("there is more to see")

// empties is the topics in which the last claim of this process has found nothing. What it forgets, and what it does not know of others, costs a round
// trip.
type empties struct {
	mu     sync.Mutex
	topics map[string]bool
}

// took takes in what a claim has found.
func (e *empties) took(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.topics == nil || len(e.topics) > most {
		e.topics = map[string]bool{}
	}
	for topic := range a.pages.asked {
		if len(a.pages.claimable[topic])+a.pages.damaged[topic] == 0 {
			e.topics[topic] = true
		} else {
			delete(e.topics, topic)
		}
	}
}

// forget is where nobody knows into which topics something was put.
func (e *empties) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.topics = nil
}

// woke is of topics that something was put into.
func (e *empties) woke(woken []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, topic := range woken {
		delete(e.topics, topic)
	}
}

// all reports whether nothing but claims is called for, from topics in which there was nothing.
func (e *empties) all(calls []store.Call) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range calls {
		if len(calls[i].Need.Claim) == 0 || len(calls[i].Need.Known) > 0 {
			return false
		}
		for _, page := range calls[i].Need.Claim {
			if !e.topics[page.Topic] {
				return false
			}
		}
	}
	return true
}

// glanced is an error where a glance is not enough.
func (a *attempt) glanced() error {
	if len(a.used) > 0 {
		return errGlanced
	}
	for topic := range a.pages.asked {
		if len(a.pages.claimable[topic])+a.pages.damaged[topic] > 0 {
			return errGlanced
		}
	}
	return nil
}
