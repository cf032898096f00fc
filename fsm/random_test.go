package fsm_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"pgregory.net/rapid"
)

// What the laws speak of: two topics, two workers, two locks, eight messages, of which not all exist, and two keys.
var (
	someLocks   = []string{"l", "r"}
	someTopics  = []string{"mail", "post"}
	someWorkers = []events.ID{workerA, workerB}
	someKeys    = []string{"", "", "k", "l"}
)

func messageID(t *rapid.T) events.ID { return events.ID{byte(rapid.IntRange(1, 8).Draw(t, "message"))} }

// anyHeld is what a store might hold: every message has come to its state by commands, and counts and keys fit them.
func anyHeld(t *rapid.T) fsm.Held {
	h := fsm.Held{
		Now: now, Messages: map[events.ID]fsm.Message{}, Topics: map[string]fsm.Topic{}, Workers: map[events.ID]fsm.Worker{},
		Keys: map[fsm.Key]fsm.KeyHolder{}, Claimable: map[string][]fsm.Message{}, Claims: map[events.ID][]fsm.Message{},
		Uncounted: map[string][]fsm.Message{}, Locks: map[string]fsm.Lock{}, Waiting: map[string][]fsm.Message{},
		Beats: map[events.ID]fsm.Member{}, Leaders: map[string]fsm.Leader{}, Fence: 1000,
	}
	for _, name := range someTopics {
		if rapid.Bool().Draw(t, "topic seen") {
			h.Topics[name] = fsm.Topic{
				Name: name, Version: 4, State: rapid.SampledFrom([]events.State{events.Active, events.Active, events.Paused}).Draw(t, "topic state"),
				Limit: rapid.IntRange(0, 5).Draw(t, "limit"),
			}
		}
	}
	for _, id := range someWorkers {
		if w := workerIn(rapid.SampledFrom([]events.State{events.Absent, events.Live, events.Lost, events.Stopped}).Draw(t, "worker")); w.Version > 0 {
			w.ID = id
			h.Workers[id] = w
		}
		if rapid.Bool().Draw(t, "beats") {
			h.Beats[id] = fsm.Member{Worker: id, LastBeatAt: now.Add(-time.Duration(rapid.IntRange(0, 240).Draw(t, "beat age")) * time.Second)}
		}
	}
	h.Leaders[fsm.Beat] = leaderIn(rapid.SampledFrom([]events.State{events.Absent, events.Led, events.Vacant}).Draw(t, "leader"))
	h.Clock = clockIn(rapid.SampledFrom([]events.State{events.Absent, events.Active}).Draw(t, "clock"))
	for id := byte(1); id <= 6; id++ {
		add(t, h, anyMessage(t, h, events.ID{id}))
	}
	for name, topic := range h.Topics {
		topic.Running += rapid.IntRange(0, 2).Draw(t, "claims beyond the page")
		topic.Counting = topic.Limited() && (len(h.Uncounted[name]) > 0 || rapid.IntRange(0, 3).Draw(t, "counting") == 0)
		h.Topics[name] = topic
	}
	anyLocks(t, &h)
	anyPruning(t, &h)
	return h
}

// anyPruning is some of what is held, to be told before what is a day old goes.
func anyPruning(t *rapid.T, h *fsm.Held) {
	h.Pruning = fsm.Pruning{Through: 500, At: now.Add(-24 * time.Hour), Events: 100}
	h.Erased = map[events.ID]bool{}
	add := func(v fsm.Value) {
		if v.Kept() && rapid.Bool().Draw(t, "to be told") {
			h.Pruning.Rows = append(h.Pruning.Rows, v)
		}
	}
	for id := range byte(9) {
		m := h.Messages[events.ID{id}]
		add(&m)
		h.Erased[m.ID] = !m.Live() && rapid.Bool().Draw(t, "erased")
	}
	for _, name := range someTopics {
		topic := h.Topics[name]
		add(&topic)
	}
	for _, name := range someLocks {
		l := h.Locks[name]
		add(&l)
	}
	leader := h.Leaders[fsm.Beat]
	add(&leader)
	add(&h.Clock)
}

// anyLocks gives every open claim its permit, most often, and some workers one beside.
func anyLocks(t *rapid.T, h *fsm.Held) {
	for _, m := range h.Messages {
		if m.LockToken > 0 && m.ID[0]%4 != 3 { // of a fourth it was taken by force
			h.Permits = append(h.Permits, fsm.Permit{PermitKey: m.Permit(), Worker: m.Worker, Message: m.ID, AcquiredAt: m.ClaimedAt})
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "sessions") {
		p := session(rapid.SampledFrom(someWorkers).Draw(t, "worker"), now.Add(-time.Duration(i)*40*time.Second), events.Token(900+i))
		p.Lock = rapid.SampledFrom(someLocks).Draw(t, "lock")
		if rapid.Bool().Draw(t, "ttl") {
			p.ExpiresAt = now.Add(time.Duration(i-1) * time.Minute)
		}
		h.Permits = append(h.Permits, p)
	}
	slices.SortFunc(h.Permits, func(a, b fsm.Permit) int {
		return cmp.Or(strings.Compare(a.Lock, b.Lock), cmp.Compare(a.Token, b.Token))
	})
	for _, name := range someLocks {
		l := fsm.Lock{Name: name, Version: 8, State: events.Free, Permits: rapid.IntRange(0, 3).Draw(t, "permits")}
		for _, p := range h.Permits {
			if p.Lock == name {
				l.Held, l.State = l.Held+1, events.Held
			}
		}
		h.Locks[name] = l
	}
	for id := range byte(9) {
		if m, ok := h.Messages[events.ID{id}]; ok && (m.State == events.Blocked || m.Trying) {
			h.Waiting[m.Lock] = append(h.Waiting[m.Lock], m)
		}
	}
}

// add puts a message where a store would find it.
func add(t *rapid.T, h fsm.Held, m fsm.Message) {
	if m.State == events.Absent {
		return
	}
	if m.Key != "" && m.Open() {
		key := fsm.Key{Topic: m.Topic, Name: m.Key}
		if h.Keys[key].Open {
			return // one open message has a key
		}
		h.Keys[key] = fsm.KeyHolder{Message: m.ID, Open: true, UntilAt: m.UniqueAt}
	}
	h.Messages[m.ID] = m
	switch m.State {
	case events.Queued:
		if !m.DueAt.After(h.Now) && rapid.IntRange(0, 4).Draw(t, "in the page") > 0 {
			h.Claimable[m.Topic] = append(h.Claimable[m.Topic], m)
		}
	case events.Running:
		h.Claims[m.Worker] = append(h.Claims[m.Worker], m)
		topic, seen := h.Topics[m.Topic]
		if m.Counted && seen {
			topic.Running++
			h.Topics[m.Topic] = topic
		} else if !m.Counted {
			h.Uncounted[m.Topic] = append(h.Uncounted[m.Topic], m)
		}
	}
}

// anyMessage is led by random commands; what is refused leads nowhere.
func anyMessage(t *rapid.T, h fsm.Held, id events.ID) fsm.Message {
	m, at := fsm.Message{ID: id}, h.Now.Add(-time.Hour)
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		var c fsm.MessageCommand
		switch {
		case m.State == events.Absent:
			c = anyDraft(t, id).EnqueueMessage
		case m.State == events.Queued && rapid.IntRange(0, 3).Draw(t, "claim") > 0:
			topic := h.Topics[m.Topic]
			counted := topic.Limited() && rapid.Bool().Draw(t, "counted")
			claim := fsm.ClaimMessage{Worker: rapid.SampledFrom(someWorkers).Draw(t, "worker"), Counted: counted, Running: 1, Limit: topic.Limit}
			if m.Lock != "" {
				claim.LockToken = events.Token(100*int(id[0]) + m.Version)
			}
			c = claim
		case m.Lock != "" && m.State == events.Queued:
			c = fsm.BlockMessage{}
		case m.State == events.Blocked && rapid.Bool().Draw(t, "unblock"):
			c = fsm.UnblockMessage{}
		default:
			c = anyCommand(t, m)
		}
		at = at.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
		list, err := m.Decide(c, at)
		if err != nil {
			continue
		}
		for _, event := range list {
			m = m.Evolve(event, at)
		}
	}
	return m
}

func anyDraft(t *rapid.T, id events.ID) fsm.Draft {
	return fsm.Draft{ID: id, Given: true, EnqueueMessage: fsm.EnqueueMessage{
		Topic:     rapid.SampledFrom(someTopics).Draw(t, "topic"),
		Key:       rapid.SampledFrom(someKeys).Draw(t, "key"),
		Lock:      rapid.SampledFrom(append([]string{""}, someLocks...)).Draw(t, "lock"),
		OnLocked:  rapid.SampledFrom([]events.LockPolicy{events.WaitForLock, events.SkipIfLocked}).Draw(t, "on locked"),
		Delay:     time.Duration(rapid.IntRange(-1, 2).Draw(t, "delay")) * time.Hour / 2,
		UniqueFor: time.Duration(rapid.IntRange(0, 2).Draw(t, "unique for")) * time.Hour,
		Limits:    events.Limits{MaxAttempts: rapid.IntRange(0, 3).Draw(t, "attempts"), BackoffMax: time.Minute},
	}}
}

// anyCallback is the result of a claim, most often with its token.
func anyCallback(t *rapid.T, m fsm.Message) fsm.MessageCommand {
	token := max(m.Token, 1)
	if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
		token = events.Token(rapid.IntRange(1, 9).Draw(t, "token"))
	}
	return rapid.SampledFrom(append(callbacks(token),
		fsm.FailMessage{Token: token, Error: "no", Jitter: rapid.IntRange(-fsm.MaxJitter, fsm.MaxJitter).Draw(t, "jitter")},
		fsm.ReleaseMessage{Token: token, Reason: events.ReasonSnoozed, Delay: time.Minute},
	)).Draw(t, "callback")
}

// anyCommand is a command to a message that exists.
func anyCommand(t *rapid.T, m fsm.Message) fsm.MessageCommand {
	if rapid.Bool().Draw(t, "callback") {
		return anyCallback(t, m)
	}
	return rapid.SampledFrom([]fsm.MessageCommand{
		fsm.CancelMessage{By: "ops"}, fsm.TakeBackMessage{By: "ops"}, fsm.RedriveMessage{By: "ops"},
		fsm.OrphanMessage{Evidence: events.Evidence{Claimer: m.Worker, Limit: 3}},
	}).Draw(t, "command")
}

// composed are the names of all composed commands.
var composed = []string{
	"claim", "enqueue", "settle", "reclaim", "operate", "operate-topic", "operate-worker", "count-claims",
	"acquire", "unlock", "force-release", "expire", "operate-lock", "repair-lock", "operate-leader", "operate-clock", "record-sweep",
	"prune", "erase",
}

// decider is a composed command.
type decider struct {
	decide func(fsm.Held) (fsm.Outcome, error)
	claim  fsm.Claim // where it is one
}

// anyDecider is a composed command of the given name.
func anyDecider(t *rapid.T, h fsm.Held, name string) decider {
	topic, worker := rapid.SampledFrom(someTopics).Draw(t, "topic"), rapid.SampledFrom(someWorkers).Draw(t, "worker")
	ids := rapid.SliceOfN(rapid.Custom(messageID), 1, 6).Draw(t, "ids")
	switch name {
	case "claim":
		c := fsm.Claim{Worker: worker, Most: rapid.IntRange(0, 4).Draw(t, "most")}
		for _, name := range rapid.Permutation(someTopics).Draw(t, "topics") {
			c.Asks = append(c.Asks, fsm.Ask{Topic: name, N: rapid.IntRange(0, 5).Draw(t, "ask")})
		}
		return decider{c.Decide, c}
	case "enqueue":
		c := fsm.Enqueue{}
		for _, id := range ids {
			c.Drafts = append(c.Drafts, anyDraft(t, id))
		}
		if rapid.Bool().Draw(t, "starts") {
			c.Topics = map[string]fsm.TopicStart{topic: {Limit: rapid.IntRange(0, 3).Draw(t, "limit")}}
		}
		return decider{decide: func(h fsm.Held) (fsm.Outcome, error) {
			o, _, err := c.Decide(h)
			return o, err
		}}
	case "settle":
		c := fsm.Settle{Sender: worker, Recordable: rapid.IntRange(0, 4).Draw(t, "recordable")}
		for _, id := range ids {
			c.Items = append(c.Items, fsm.Settlement{ID: id, Command: anyCallback(t, h.Messages[id]), Permit: anyPermit(t, h, id)})
		}
		return decider{decide: func(h fsm.Held) (fsm.Outcome, error) {
			o, _, err := c.Decide(h)
			return o, err
		}}
	case "reclaim":
		c := sweeping()
		c.Evidence.Claimer, c.Evidence.Limit = worker, 3
		if rapid.Bool().Draw(t, "gone") {
			c.Evidence.Reason = events.ReasonProcessGone
		}
		return decider{decide: func(h fsm.Held) (fsm.Outcome, error) {
			o, _, err := c.Decide(h)
			return o, err
		}}
	case "operate":
		c := fsm.Operate{IDs: ids, Judged: someWorkers, Command: rapid.SampledFrom([]fsm.MessageCommand{
			fsm.CancelMessage{By: "ops"}, fsm.TakeBackMessage{}, fsm.RedriveMessage{},
		}).Draw(t, "operation"), Force: rapid.SampledFrom([]fsm.Force{fsm.Unforced, fsm.Forced}).Draw(t, "force")}
		return decider{decide: func(h fsm.Held) (fsm.Outcome, error) {
			o, _, err := c.Decide(h)
			return o, err
		}}
	case "operate-topic":
		return decider{decide: fsm.OperateTopic{Topic: topic, Command: rapid.SampledFrom([]fsm.TopicCommand{
			fsm.ConfigureTopic{Limit: rapid.IntRange(0, 5).Draw(t, "limit")}, fsm.PauseTopic{}, fsm.ResumeTopic{}, fsm.CountTopic{},
		}).Draw(t, "operation")}.Decide}
	case "operate-worker":
		return decider{decide: fsm.OperateWorker{
			Worker: worker, Command: rapid.SampledFrom(workerCases()).Draw(t, "operation"),
		}.Decide}
	case "prune":
		c := fsm.Prune{Retention: time.Duration(rapid.IntRange(20, 25).Draw(t, "hours")) * time.Hour, Rows: rapid.IntRange(1, 20).Draw(t, "rows")}
		return decider{decide: func(h fsm.Held) (fsm.Outcome, error) {
			o, _, err := c.Decide(h)
			return o, err
		}}
	case "erase":
		return decider{decide: func(h fsm.Held) (fsm.Outcome, error) {
			o, _, err := fsm.Erase{IDs: ids, By: "ops"}.Decide(h)
			return o, err
		}}
	case "count-claims":
		return decider{decide: fsm.CountClaims{Topic: topic, Page: rapid.IntRange(1, 4).Draw(t, "page")}.Decide}
	default:
		return decider{decide: anyLockDecider(t, h, name, worker)}
	}
}

// anyPermit is most often the one that the message's claim took.
func anyPermit(t *rapid.T, h fsm.Held, id events.ID) fsm.PermitKey {
	if len(h.Permits) > 0 && rapid.IntRange(0, 3).Draw(t, "another permit") == 0 {
		return rapid.SampledFrom(h.Permits).Draw(t, "permit").PermitKey
	}
	return h.Messages[id].Permit()
}

// anyLockDecider is a composed command on locks, or on what the beat keeps.
func anyLockDecider(t *rapid.T, h fsm.Held, name string, worker events.ID) func(fsm.Held) (fsm.Outcome, error) {
	lock := rapid.SampledFrom(someLocks).Draw(t, "lock")
	switch name {
	case "acquire":
		return func(h fsm.Held) (fsm.Outcome, error) {
			o, _, err := fsm.Acquire{Lock: lock, Worker: worker, TTL: time.Minute}.Decide(h)
			return o, err
		}
	case "unlock":
		c := fsm.Unlock{Worker: worker, Recordable: rapid.IntRange(0, 3).Draw(t, "recordable")}
		for range rapid.IntRange(1, 4).Draw(t, "permits") {
			c.Permits = append(c.Permits, anyPermit(t, h, messageID(t)))
		}
		return func(h fsm.Held) (fsm.Outcome, error) {
			o, _, err := c.Decide(h)
			return o, err
		}
	case "force-release":
		return fsm.ForceRelease{Lock: lock, Token: anyPermit(t, h, messageID(t)).Token, By: "ops"}.Decide
	case "expire":
		return fsm.ExpireLocks{Lock: lock}.Decide
	case "operate-lock":
		return fsm.OperateLock{Lock: lock, ConfigureLock: fsm.ConfigureLock{Permits: rapid.IntRange(1, 5).Draw(t, "permits")}}.Decide
	case "repair-lock":
		return fsm.RepairLock{Lock: lock}.Decide
	case "operate-leader":
		c := rapid.SampledFrom(leaderCases()).Draw(t, "operation")
		return fsm.OperateLeader{Leadership: fsm.Beat, Command: c.command}.Decide
	case "operate-clock":
		step, _ := rapid.SampledFrom(clockCases()).Draw(t, "step").command.(fsm.StepClock) // a snapshot is none, and steps nowhere
		return fsm.OperateClock{StepClock: fsm.StepClock{FromAt: step.FromAt, ToAt: step.ToAt, Worker: worker}}.Decide
	default:
		return fsm.RecordSweep{Sweep: thisID, Event: &events.SweepFinished{Decider: worker}}.Decide
	}
}

// clone shares nothing with h.
func clone(h fsm.Held) fsm.Held {
	pages := func(list []fsm.Message) []fsm.Message { return slices.Clone(list) }
	h.Messages, h.Topics, h.Workers, h.Keys = maps.Clone(h.Messages), maps.Clone(h.Topics), maps.Clone(h.Workers), maps.Clone(h.Keys)
	h.Claimable, h.Claims, h.Uncounted = maps.Clone(h.Claimable), maps.Clone(h.Claims), maps.Clone(h.Uncounted)
	h.Locks, h.Waiting, h.Permits = maps.Clone(h.Locks), maps.Clone(h.Waiting), slices.Clone(h.Permits)
	h.Beats, h.Leaders = maps.Clone(h.Beats), maps.Clone(h.Leaders)
	for key, list := range h.Waiting {
		h.Waiting[key] = pages(list)
	}
	for key, list := range h.Claimable {
		h.Claimable[key] = pages(list)
	}
	for key, list := range h.Claims {
		h.Claims[key] = pages(list)
	}
	for key, list := range h.Uncounted {
		h.Uncounted[key] = pages(list)
	}
	return h
}
