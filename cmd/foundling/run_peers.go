package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
)

// newborn is how long a process may take from recording its input to being known as a worker.
const newborn = 2 * time.Second

// process is a process as the log names it.
type process struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

// actor is how the log names the process as the one who asked.
func (p process) actor() string { return fmt.Sprintf("%s:%d", p.Host, p.PID) }

// text is how people are told of the process.
func (p process) text() string {
	if p.PID == 0 {
		return unknown
	}
	return fmt.Sprintf("%d on %s", p.PID, harmless(p.Host))
}

// processOf is the process that a worker is or was, as it said when it started; the zero where the log knows it no more.
func processOf(ctx context.Context, s store.Store, worker events.ID) (process, error) {
	entity := events.WorkerEntity(worker)
	for r, err := range logOf(ctx, s, store.Filter{Entity: entity}) {
		if err != nil {
			return process{}, err
		}
		switch r.Event.(type) {
		case *events.WorkerStarted, *events.WorkerSnapshotted:
			value, err := calls.Fold(entity, []events.Recorded{r})
			if w, ok := value.(*fsm.Worker); ok {
				return process{w.Host, w.PID}, err
			}
			return process{}, err
		}
	}
	return process{}, nil
}

// thisProcess is how workers of this process are named in the log.
func thisProcess() process {
	host, _ := os.Hostname() // a worker without a host name is still a worker
	return process{host, os.Getpid()}
}

// exists reports whether the system knows a process of this host. Where it cannot be asked, it does.
func (p process) exists() bool {
	found, err := os.FindProcess(p.PID)
	if err != nil {
		return false
	}
	defer func() { _ = found.Release() }() // it is nobody's child to wait for
	return !errors.Is(found.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// life is what is known of a worker that has not said that it ended.
type life int

const (
	living   life = iota // or stopped, which is not ended
	gone                 // proven
	silent               // its heartbeats do not come any more
	unproven             // there is no such process, and no proof of its end; its silence will tell
)

// peer is a worker on the batch, of this process or of another one.
type peer struct {
	process
	life    life
	started time.Time
	proof   bool // its end can be proven
	topics  []string
}

// peerOf is the worker of a row, with nothing known of its life yet.
func peerOf(row store.Row) (peer, error) {
	v, err := calls.Value(row)
	if err != nil {
		return peer{}, err
	}
	w, ok := v.(*fsm.Worker)
	if !ok {
		return peer{}, fmt.Errorf("%s: want a worker", row.Entity)
	}
	return peer{process: process{w.Host, w.PID}, started: w.StartedAt, proof: w.Proof, topics: w.Topics}, nil
}

// peers is every worker on the batch that has not said that it ended.
func (b *batch) peers(ctx context.Context) (map[events.ID]peer, error) {
	known := map[events.ID]peer{}
	earlier := map[events.ID]bool{} // another process had this one's number
	var ids []events.ID
	for row, err := range b.store.Rows(ctx, store.RowFilter{Kind: events.KindWorker}) {
		if err != nil {
			return nil, err
		}
		p, err := peerOf(row)
		if err != nil {
			return nil, err
		}
		id := row.Entity.ID
		earlier[id] = p.process == thisProcess() && p.started.Before(b.began)
		known[id] = p
		ids = append(ids, id)
	}
	vitals, err := readVitals(ctx, b.store, runReclaimAfter, ids)
	if err != nil {
		return nil, err
	}
	for id, p := range known {
		p.life = p.judge(vitals.of(id), earlier[id])
		known[id] = p
	}
	return known, vitals.doubt
}

// judge says what is known of a peer's life. A process of this host that the system knows lives, however silent it is.
func (p peer) judge(x vital, earlier bool) life {
	here := p.Host == thisProcess().Host
	switch {
	case x.dead == events.ReasonProcessGone:
		return gone
	case here && !earlier && p.exists():
		return living
	case x.dead != "":
		return silent
	case here:
		return unproven
	}
	return living
}

// livePeer gives a live process that runs lines of the batch; false where there is none.
func (b *batch) livePeer(ctx context.Context) (process, bool, error) {
	known, err := b.peers(ctx)
	for _, p := range known {
		if p.life == living && slices.Contains(p.topics, topicLines) {
			return p.process, true, err
		}
	}
	return process{}, false, err
}

// openInput is an input of the batch that, as far as the store knows, was not read to its end.
type openInput struct {
	id    events.ID
	by    process // who reads it
	alive bool    // that process is
}

// openInputs is every input of the batch that was not read to its end.
func (b *batch) openInputs(ctx context.Context) ([]openInput, error) {
	var list []openInput
	var known map[events.ID]peer
	for row, err := range b.store.Rows(ctx, store.RowFilter{Kind: events.KindMessage, Topic: topicInput, Payloads: true}) {
		if err != nil {
			return nil, err
		}
		if known == nil {
			if known, err = b.peers(ctx); err != nil {
				return nil, err
			}
		}
		m, err := calls.Message(row)
		if err != nil {
			return nil, err
		}
		var by process
		if row.Payload != nil {
			_ = json.Unmarshal(row.Payload.Bytes, &by) // damaged: then nobody is known to read it
		}
		in := openInput{id: m.ID, by: by}
		if in.alive, err = b.isRead(ctx, reader{m.ID, by, m.EnqueuedAt}, known); err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return list, nil
}

// reader is who reads an input, as its message says.
type reader struct {
	input events.ID
	by    process
	since time.Time
}

// isRead reports whether the process that reads an input is alive.
func (b *batch) isRead(ctx context.Context, r reader, known map[events.ID]peer) (bool, error) {
	me := thisProcess()
	switch {
	case r.input == b.input:
		return true, nil
	case r.by == me:
		return false, nil // an earlier process had this one's number
	}
	for _, p := range known {
		if p.process == r.by && p.life == living {
			return true, nil
		}
	}
	// A process says first what it reads, and only then that it works.
	now, err := b.store.Now(ctx)
	return err == nil && r.by.PID != 0 && now.Sub(r.since) < newborn && (r.by.Host != me.Host || r.by.exists()), err
}
