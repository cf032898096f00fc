package fsm_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"pgregory.net/rapid"
)

// What the world speaks of: three topics, and locks of one and two permits to begin with.
var (
	worldTopics = []string{"mail", "post", "wire"}
	worldLocks  = []string{"one", "two"}
)

// page is how many claims and permits a reclaim of the world takes at once: few, so that an estate has pages.
const page = 2

// steps are what may happen, by name. Each happens or, where there is nothing for it, does not.
func (w *world) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"enqueue":   func(*rapid.T) { w.enqueue() },
		"enqueue 2": func(*rapid.T) { w.enqueue() },
		"claim":     func(*rapid.T) { w.claim() },
		"claim 2":   func(*rapid.T) { w.claim() },
		"settle":    func(*rapid.T) { w.settle() },
		"settle 2":  func(*rapid.T) { w.settle() },
		"resend":    func(*rapid.T) { w.resend() },
		"session":   func(*rapid.T) { w.session() },
		"unlock":    func(*rapid.T) { w.unlock() },
		"force":     func(*rapid.T) { w.force() },
		"expire":    func(*rapid.T) { w.expire() },
		"permits":   func(*rapid.T) { w.configure(w.aLock(), rapid.IntRange(1, 4).Draw(w.t, "permits")) },
		"operate":   func(*rapid.T) { w.operate() },
		"topic":     func(*rapid.T) { w.operateTopic() },
		"topic 2":   func(*rapid.T) { w.operateTopic() },
		"count":     func(*rapid.T) { w.countClaims() },
		"start":     func(*rapid.T) { w.start() },
		"stop":      func(*rapid.T) { w.stop() },
		"kill":      func(*rapid.T) { w.kill() },
		"pause":     func(*rapid.T) { w.pause() },
		"resume":    func(*rapid.T) { w.resume() },
		"pass":      func(*rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 130).Draw(w.t, "seconds")) * time.Second) },
		"set clock": func(*rapid.T) { w.setClock() },
		"sweep":     func(*rapid.T) { w.sweep() },
		"sweep 2":   func(*rapid.T) { w.sweep() },
		"doubt":     func(*rapid.T) { w.reclaimInDoubt() },
		"purge":     func(*rapid.T) { w.purge() },
		"prune":     func(*rapid.T) { w.prune() },
		"erase":     func(*rapid.T) { w.erase() },
	}
}

func (w *world) aTopic() string { return rapid.SampledFrom(worldTopics).Draw(w.t, "topic") }
func (w *world) aLock() string  { return rapid.SampledFrom(worldLocks).Draw(w.t, "lock") }

// process is one that passes; nil where none does.
func (w *world) process(pass func(*process) bool) *process {
	list := slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return !pass(p) })
	if len(list) == 0 {
		return nil
	}
	return rapid.SampledFrom(list).Draw(w.t, "process")
}

func (w *world) enqueue() {
	var c fsm.Enqueue
	for i := range rapid.IntRange(1, 4).Draw(w.t, "messages") {
		c.Drafts = append(c.Drafts, fsm.Draft{ID: events.ID{'m', byte(len(w.places) + i + 1)}, EnqueueMessage: fsm.EnqueueMessage{
			Topic: w.aTopic(), Priority: events.Priority(rapid.IntRange(-1, 1).Draw(w.t, "priority")),
			Lock:     rapid.SampledFrom([]string{"one", "one", "two", ""}).Draw(w.t, "lock"),
			OnLocked: rapid.SampledFrom([]events.LockPolicy{events.WaitForLock, events.WaitForLock, events.SkipIfLocked}).Draw(w.t, "on locked"),
			Delay:    time.Duration(rapid.SampledFrom([]int{0, 0, 0, 20}).Draw(w.t, "delay")) * time.Second,
			Limits:   events.Limits{MaxAttempts: 2, BackoffBase: time.Second},
		}})
	}
	w.say("enqueue")
	o, _, err := c.Decide(w.held())
	w.keep(o, err)
}

func (w *world) claim() {
	p := w.process((*process).acts)
	if p == nil {
		return
	}
	c, h := fsm.Claim{Worker: p.id}, w.held()
	for _, topic := range rapid.Permutation(worldTopics).Draw(w.t, "topics")[:rapid.IntRange(1, 3).Draw(w.t, "asks")] {
		ask := fsm.Ask{Topic: topic, N: rapid.IntRange(1, 4).Draw(w.t, "n")}
		c.Asks = append(c.Asks, ask)
		w.claimableInto(&h, ask)
	}
	w.say("%s claims %v", names.ID(p.id), c.Asks)
	o, err := c.Decide(h)
	w.keep(o, err)
	for _, change := range o.Changes {
		if m, ok := change.Value.(*fsm.Message); ok && m.State == events.Running {
			p.handlers = append(p.handlers, fsm.Settlement{ID: m.ID, Command: fsm.CompleteMessage{Token: m.Token}, Permit: m.Permit()})
		}
	}
}

// settle ends handlers of a process and brings their results.
func (w *world) settle() {
	p := w.process(func(p *process) bool { return p.acts() && len(p.handlers) > 0 })
	if p == nil {
		return
	}
	n := rapid.IntRange(1, len(p.handlers)).Draw(w.t, "results")
	c := fsm.Settle{Sender: p.id, Recordable: 9}
	for _, item := range p.handlers[:n] {
		token := item.Command.(fsm.CompleteMessage).Token
		item.Command = rapid.SampledFrom([]fsm.MessageCommand{
			item.Command, fsm.FailMessage{Token: token}, fsm.ReleaseMessage{Token: token, Reason: events.ReasonSnoozed, Delay: 10 * time.Second},
			fsm.ReleaseMessage{Token: token, Reason: events.ReasonUnclaimed}, fsm.DeadLetterMessage{Token: token}, fsm.CancelMessage{Token: token},
		}).Draw(w.t, "result")
		c.Items = append(c.Items, item)
		w.sent = append(w.sent, sending{p.id, item})
	}
	p.handlers = p.handlers[n:]
	w.send(c)
}

// resend sends a result once more, as after a lost answer, or as somebody else.
func (w *world) resend() {
	if len(w.sent) == 0 {
		return
	}
	s := rapid.SampledFrom(w.sent).Draw(w.t, "sent")
	if p := w.process((*process).acts); p != nil && rapid.Bool().Draw(w.t, "by another") {
		s.from = p.id
	}
	w.send(fsm.Settle{Sender: s.from, Recordable: 9, Items: []fsm.Settlement{s.item}})
}

func (w *world) send(c fsm.Settle) {
	h := w.held()
	var words []string
	for _, item := range c.Items {
		words = append(words, item.Command.Name()+" "+names.ID(item.ID))
		w.messageInto(&h, item.ID)
		if item.Permit.Token > 0 {
			w.lockInto(&h, item.Permit.Lock)
			w.permitsInto(&h, w.permit(item.Permit)...)
		}
	}
	w.say("%s settles %s", names.ID(c.Sender), strings.Join(words, ", "))
	o, _, err := c.Decide(h)
	w.keep(o, err)
	w.backOnlyFrom(o, func(worker events.ID) bool { return worker == c.Sender })
}

// session takes a permit without a message.
func (w *world) session() {
	p := w.process((*process).acts)
	if p == nil {
		return
	}
	c := fsm.Acquire{Lock: w.aLock(), Worker: p.id, TTL: time.Duration(rapid.SampledFrom([]int{1, 40, 0}).Draw(w.t, "ttl")) * time.Second}
	w.say("%s acquires %s for %s", names.ID(p.id), c.Lock, c.TTL)
	o, _, err := c.Decide(w.holders(c.Lock))
	if errors.Is(err, &fsm.Refusal{Reason: events.ReasonLockTaken}) {
		w.say("  refused")
		return
	}
	w.keep(o, err)
}

// holders is what a command on a lock and whoever holds it must see.
func (w *world) holders(lock string) fsm.Held {
	h := w.held()
	w.lockInto(&h, lock)
	w.permitsInto(&h, w.pageOf(fsm.LockPage, func(p fsm.Permit) bool { return p.Lock == lock })...)
	return h
}

// unlock gives back some of the permits that there are, or were, whoever holds them.
func (w *world) unlock() {
	p := w.process((*process).acts)
	if p == nil {
		return
	}
	c, h := fsm.Unlock{Worker: p.id, Recordable: 9}, w.held()
	for range rapid.IntRange(1, 2).Draw(w.t, "permits") {
		name := w.aLock()
		key := fsm.PermitKey{Lock: name, Token: events.Token(rapid.IntRange(1, int(w.tokens[name])+1).Draw(w.t, "token"))}
		if list := w.pageOf(100, func(q fsm.Permit) bool { return q.Worker == p.id && q.Message == events.ID{} }); len(list) > 0 && rapid.Bool().Draw(w.t, "its own") {
			key = rapid.SampledFrom(list).Draw(w.t, "permit").PermitKey
		}
		c.Permits = append(c.Permits, key)
		w.lockInto(&h, key.Lock)
		w.permitsInto(&h, w.permit(key)...)
	}
	w.say("%s unlocks %v", names.ID(p.id), c.Permits)
	o, _, err := c.Decide(h)
	w.keep(o, err)
	w.backOnlyFrom(o, func(worker events.ID) bool { return worker == p.id })
}

func (w *world) force() {
	c := fsm.ForceRelease{Lock: w.aLock(), By: "ops"}
	if list := w.pageOf(100, func(p fsm.Permit) bool { return p.Lock == c.Lock }); len(list) > 0 && rapid.Bool().Draw(w.t, "one") {
		c.Token = rapid.SampledFrom(list).Draw(w.t, "permit").Token
	}
	w.say("ops force-release %s %d", c.Lock, c.Token)
	w.keep(c.Decide(w.holders(c.Lock)))
}

func (w *world) expire() {
	for _, lock := range worldLocks {
		w.say("permits of %s expire", lock)
		w.keep(fsm.ExpireLocks{Lock: lock}.Decide(w.holders(lock)))
	}
}

func (w *world) configure(lock string, permits int) {
	h := w.held()
	w.lockInto(&h, lock)
	w.say("ops give %s %d permits", lock, permits)
	w.keep(fsm.OperateLock{Lock: lock, ConfigureLock: fsm.ConfigureLock{Permits: permits}}.Decide(h))
}

// operate cancels, takes back or redrives some messages.
func (w *world) operate() {
	if len(w.places) == 0 {
		return
	}
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(w.places), 1, min(4, len(w.places)), rapid.ID[events.ID]).Draw(w.t, "messages")
	dead := w.inPlace(func(m fsm.Message) bool { return m.State == events.DeadLettered })
	if len(dead) > 0 && rapid.Bool().Draw(w.t, "redrive") {
		w.operateOn(fsm.Operate{IDs: []events.ID{dead[0].ID}, Command: fsm.RedriveMessage{By: "ops"}})
		return
	}
	locks := map[string]bool{}
	ids = slices.DeleteFunc(ids, func(id events.ID) bool { // of each lock one, since only the first waiter of a topic is held
		m := w.messages[id]
		twice := locks[m.Lock] && m.Live()
		locks[m.Lock] = locks[m.Lock] || m.Lock != "" && m.Live()
		return twice
	})
	w.operateOn(fsm.Operate{
		IDs: ids, Force: rapid.SampledFrom([]fsm.Force{fsm.Unforced, fsm.Forced}).Draw(w.t, "force"),
		Command: rapid.SampledFrom([]fsm.MessageCommand{fsm.TakeBackMessage{By: "ops"}, fsm.CancelMessage{By: "ops"}, fsm.RedriveMessage{By: "ops"}}).Draw(w.t, "wish"),
	})
}

func (w *world) operateOn(c fsm.Operate) {
	h := w.held()
	h.Clock = w.clock
	var words []string
	for _, id := range c.IDs {
		m := w.known(id)
		words = append(words, names.ID(id))
		w.messageInto(&h, id)
		w.lockInto(&h, m.Lock)
		w.permitsInto(&h, w.permit(m.Permit())...)
		if b, beats := w.beats[m.Worker]; beats {
			h.Beats[m.Worker] = b
		}
		c.Judged = append(c.Judged, m.Worker)
		if p := w.of(m.Worker); p != nil && p.dead && rapid.Bool().Draw(w.t, "proof") {
			c.Gone = append(c.Gone, p.id)
		}
	}
	w.say("ops %s %s, forced %v, gone %d", c.Name(), strings.Join(words, ", "), c.Force == fsm.Forced, len(c.Gone))
	o, refusals, err := c.Decide(h)
	w.keep(o, err)
	lives := func(worker events.ID) bool { p := w.of(worker); return p != nil && p.acts() }
	w.backOnlyFrom(o, func(worker events.ID) bool { return !lives(worker) })
	for i, id := range c.IDs {
		if _, takes := c.Command.(fsm.TakeBackMessage); takes && lives(h.Messages[id].Worker) && (refusals[i] == nil) != (c.Force == fsm.Forced) {
			w.fail("%s is taken from %s, which lives, forced %v: %v", names.ID(id), names.ID(h.Messages[id].Worker), c.Force == fsm.Forced, refusals[i])
		}
	}
}

// of is the process of a worker; nil where there is none.
func (w *world) of(worker events.ID) *process {
	for _, p := range w.processes {
		if p.id == worker {
			return p
		}
	}
	return nil
}

func (w *world) operateTopic() {
	c := fsm.OperateTopic{Topic: w.aTopic(), Command: rapid.SampledFrom([]fsm.TopicCommand{
		fsm.ConfigureTopic{}, fsm.ConfigureTopic{Limit: rapid.IntRange(1, 4).Draw(w.t, "limit")}, fsm.PauseTopic{}, fsm.ResumeTopic{},
	}).Draw(w.t, "wish")}
	if _, err := w.topics[c.Topic].Decide(c.Command, w.now); err == nil {
		w.do(c)
	}
}

func (w *world) do(c fsm.OperateTopic) {
	h := w.held()
	if topic, known := w.topics[c.Topic]; known {
		h.Topics[c.Topic] = topic
	}
	w.say("ops %s %s", c.Name(), c.Topic)
	w.keep(c.Decide(h))
}

func (w *world) countClaims() {
	for _, name := range worldTopics {
		if !w.topics[name].Counting {
			continue
		}
		h := w.held()
		h.Topics[name] = w.topics[name]
		list := w.inPlace(func(m fsm.Message) bool { return m.Topic == name && m.State == events.Running && !m.Counted })
		h.Uncounted[name] = list[:min(page, len(list))]
		w.say("claims of %s are counted", name)
		w.keep(fsm.CountClaims{Topic: name, Page: page}.Decide(h))
	}
}

func (w *world) start() {
	p := &process{id: events.ID{'w', byte(len(w.processes))}}
	w.processes = append(w.processes, p)
	w.say("%s starts", names.ID(p.id))
	c := fsm.OperateWorker{Worker: p.id, Command: fsm.StartWorker{Started: events.WorkerStarted{HeartbeatInterval: 15 * time.Second, FenceAfter: 90 * time.Second}}}
	w.keep(c.Decide(w.held()))
	w.beat(p)
}

func (w *world) beat(p *process) {
	w.beats[p.id] = fsm.Member{Worker: p.id, LastBeatAt: w.now, Interval: 15 * time.Second, FenceAfter: 90 * time.Second}
	p.own, p.beatAt = append(p.own, w.now), w.spent
}

// stop ends a process as it should: every handler has ended.
func (w *world) stop() {
	p := w.process((*process).acts)
	if p == nil {
		return
	}
	h := w.held()
	w.estateInto(&h, p.id, fsm.StopPage)
	w.say("%s stops", names.ID(p.id))
	w.keep(fsm.OperateWorker{Worker: p.id, Command: fsm.StopWorker{}}.Decide(h))
	p.stopped, p.handlers = true, nil
	delete(w.beats, p.id)
}

func (w *world) kill() {
	if p := w.process(func(p *process) bool { return !p.dead && !p.stopped }); p != nil {
		w.say("%s is killed", names.ID(p.id))
		p.dead, p.handlers = true, nil
	}
}

func (w *world) pause() {
	if p := w.process((*process).acts); p != nil {
		w.say("%s is stopped by a signal", names.ID(p.id))
		p.paused = true
	}
}

// resume lets a process go on, which says first that it is there. One that was forgotten meanwhile is over.
func (w *world) resume() {
	p := w.process(func(p *process) bool { return p.paused && !p.dead })
	if p == nil {
		return
	}
	w.say("%s goes on", names.ID(p.id))
	p.paused = false
	if w.workers[p.id].State == events.Purged {
		p.dead = true
		return
	}
	w.beat(p)
	if w.workers[p.id].State == events.Lost {
		h := w.held()
		h.Workers[p.id] = w.workers[p.id]
		w.keep(fsm.OperateWorker{Worker: p.id, Command: fsm.ReturnWorker{}}.Decide(h))
	}
}

// pass lets time go by, with the heartbeats that belong to it.
func (w *world) pass(d time.Duration) {
	w.say("%s go by", d)
	for d > 0 {
		step := min(d, 15*time.Second)
		d, w.now, w.spent = d-step, w.now.Add(step), w.spent+step
		for _, p := range w.processes {
			if p.acts() {
				w.beat(p)
			}
		}
	}
}

// setClock moves the store's clock. Whoever beats next sees it, and records it.
func (w *world) setClock() {
	from := w.now
	w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{-7200, -600, -60, 60, 600, 7200}).Draw(w.t, "set by")) * time.Second)
	w.say("the clock is set, it was %s", from.Sub(now))
	for _, p := range w.processes {
		if p.acts() {
			c := fsm.OperateClock{StepClock: fsm.StepClock{FromAt: from, ToAt: w.now, Worker: p.id, Tolerance: 15 * time.Second}}
			h := w.held()
			h.Clock = w.clock
			w.keep(c.Decide(h))
			w.beat(p)
		}
	}
}

func (w *world) purge() {
	for _, p := range w.processes {
		if w.workers[p.id].State != events.Lost {
			continue
		}
		h := w.held()
		w.estateInto(&h, p.id, 1)
		o, err := fsm.OperateWorker{Worker: p.id, Command: fsm.PurgeWorker{TTL: 30 * time.Minute}}.Decide(h)
		if len(o.Changes) > 0 {
			w.say("%s is forgotten", names.ID(p.id))
			delete(w.beats, p.id)
		}
		w.keep(o, err)
	}
}

// where is what a sweep's line says of a worker.
func (w *world) where(m fsm.Member) string {
	return fmt.Sprintf("%s silent for %s, gone %v", names.ID(m.Worker), w.clock.Age(w.now, m.LastBeatAt), m.Gone)
}
