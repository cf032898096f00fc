package fsm_test

import (
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
)

// Scenario D02: a lease is taken where it is free or over, renewed by who holds it under its term, and by nobody else.
func TestCampaign(t *testing.T) {
	const life, us = 45 * time.Second, time.Microsecond
	swept := now.Add(-time.Minute)
	lease := func(holder events.ID, until time.Time) fsm.Lease {
		return fsm.Lease{Holder: holder, Term: 4, UntilAt: until, Life: life, SweptAt: swept}
	}
	candidate := func(term int) fsm.Candidate { return fsm.Candidate{Worker: workerA, Term: term, Life: life} }
	gone := func(holder events.ID) fsm.Candidate {
		c := candidate(0)
		c.Gone = holder
		return c
	}
	long, above, below := candidate(4), candidate(0), candidate(0)
	long.Life, above.Above, below.Above = time.Hour, 9, 3
	tests := []struct {
		name  string
		lease fsm.Lease
		c     fsm.Candidate
		term  int // under which a leads afterwards; 0 is that the lease is as it was
	}{
		{"nobody ever had it", fsm.Lease{}, candidate(0), 1},
		{"given back", lease(events.ID{}, now.Add(life)), candidate(0), 5},
		{"given back, while another's process is gone", lease(events.ID{}, now.Add(life)), gone(workerB), 5},
		{"nobody has it, and the log knows of a later term", fsm.Lease{}, above, 10},
		{"given back, and the log knows of a later term", lease(events.ID{}, now.Add(life)), above, 10},
		{"given back, and the log is behind", lease(events.ID{}, now.Add(life)), below, 5},
		{"another's, whatever the log knows", lease(workerB, now.Add(us)), above, 0},
		{"given back by a itself", lease(events.ID{}, now.Add(life)), candidate(4), 5},
		{"a's own", lease(workerA, now.Add(us)), candidate(4), 4},
		{"a's own, just given", lease(workerA, now.Add(life)), candidate(4), 4},
		{"a's own, for another life", lease(workerA, now.Add(us)), long, 4},
		{"a's own, of which it does not know", lease(workerA, now.Add(us)), candidate(0), 0},
		{"a's own, under a term that is over", lease(workerA, now.Add(us)), candidate(3), 0},
		{"a's own, over this moment", lease(workerA, now), candidate(4), 5},
		{"another's", lease(workerB, now.Add(life)), candidate(0), 0},
		{"another's, for a microsecond", lease(workerB, now.Add(us)), candidate(0), 0},
		{"another's, over this moment", lease(workerB, now), candidate(0), 5},
		{"another's, long over", lease(workerB, now.Add(-time.Hour)), candidate(2), 5},
		{"another's under the term that a thinks its own", lease(workerB, now.Add(us)), candidate(4), 0},
		{"another's, whose process is gone", lease(workerB, now.Add(life)), gone(workerB), 5},
		{"another's, while a third one's process is gone", lease(workerB, now.Add(life)), gone(events.ID{0xc}), 0},
		{"another's, by a clock that was set back", lease(workerB, now.Add(life+us)), candidate(0), 5},
		{"a's own, by a clock that was set back", lease(workerA, now.Add(life+us)), candidate(4), 5},
	}
	for _, tt := range tests {
		want := tt.lease
		if tt.term > 0 {
			want.Holder, want.Term, want.UntilAt, want.Life = workerA, tt.term, now.Add(tt.c.Life), tt.c.Life
		}
		if diff := cmp.Diff(want, tt.lease.Campaign(tt.c, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestResignLease(t *testing.T) {
	lease := fsm.Lease{Holder: workerA, Term: 4, UntilAt: now.Add(time.Minute), Life: time.Minute, SweptAt: now}
	free := lease
	free.Holder = events.ID{}
	tests := []struct {
		name string
		c    fsm.Candidate
		want fsm.Lease
	}{
		{"its holder", fsm.Candidate{Worker: workerA, Term: 4}, free},
		{"its holder under a term that is over", fsm.Candidate{Worker: workerA, Term: 3}, lease},
		{"another", fsm.Candidate{Worker: workerB, Term: 4}, lease},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, lease.Resign(tt.c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	next := free.Campaign(fsm.Candidate{Worker: workerB, Life: time.Minute}, now)
	if next.Holder != workerB || next.Term != 5 || !next.SweptAt.Equal(now) {
		t.Errorf("the next one has %+v, want the rhythm of the one before", next)
	}
}

// The log says who led: whoever is elected says that the one before was lost, and nobody is elected under a term that is over.
func TestLeaderEvents(t *testing.T) {
	leader := fsm.Leader{Name: fsm.Beat}
	steps := []struct {
		command fsm.LeaderCommand
		want    []events.Event
		after   fsm.Leader
	}{
		{fsm.ElectLeader{Worker: workerA, Term: 1}, []events.Event{&events.LeaderElected{Worker: workerA, Term: 1}},
			fsm.Leader{Version: 1, State: events.Led, Worker: workerA, Term: 1}},
		{fsm.ElectLeader{Worker: workerB, Term: 1}, nil, fsm.Leader{Version: 1, State: events.Led, Worker: workerA, Term: 1}},
		{fsm.ElectLeader{Worker: workerB, Term: 3},
			[]events.Event{&events.LeaderLost{Worker: workerA, Term: 1}, &events.LeaderElected{Worker: workerB, Term: 3}},
			fsm.Leader{Version: 3, State: events.Led, Worker: workerB, Term: 3}},
		{fsm.ElectLeader{Worker: workerA, Term: 2}, nil, fsm.Leader{Version: 3, State: events.Led, Worker: workerB, Term: 3}},
		{fsm.ResignLeader{Worker: workerA, Term: 3}, nil, fsm.Leader{Version: 3, State: events.Led, Worker: workerB, Term: 3}},
		{fsm.ResignLeader{Worker: workerB, Term: 2}, nil, fsm.Leader{Version: 3, State: events.Led, Worker: workerB, Term: 3}},
		{fsm.ResignLeader{Worker: workerB, Term: 3}, []events.Event{&events.LeaderResigned{Worker: workerB, Term: 3}},
			fsm.Leader{Version: 4, State: events.Vacant, Worker: workerB, Term: 3}},
		{fsm.ResignLeader{Worker: workerB, Term: 3}, nil, fsm.Leader{Version: 4, State: events.Vacant, Worker: workerB, Term: 3}},
		{fsm.ElectLeader{Worker: workerB, Term: 4}, []events.Event{&events.LeaderElected{Worker: workerB, Term: 4}},
			fsm.Leader{Version: 5, State: events.Led, Worker: workerB, Term: 4}},
	}
	for i, step := range steps {
		held := fsm.Held{Now: now}
		if leader.Version > 0 {
			held.Leaders = map[string]fsm.Leader{leader.Name: leader}
		}
		outcome, err := fsm.OperateLeader{Leadership: fsm.Beat, Command: step.command}.Decide(held)
		if diff := cmp.Diff(step.want, facts(outcome)); err != nil || diff != "" {
			t.Errorf("step %d: %v (-want +got):\n%s", i, err, diff)
		}
		for _, c := range outcome.Changes {
			leader = *c.Value.(*fsm.Leader)
		}
		step.after.Name = fsm.Beat
		if diff := cmp.Diff(step.after, leader); diff != "" {
			t.Errorf("after step %d (-want +got):\n%s", i, diff)
		}
	}
}
