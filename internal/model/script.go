package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/events"
	"pgregory.net/rapid"
)

// action is one step of a script: as a story tells it, and as the model does it.
type action struct {
	line, input string
	again       string         // a look at the same commit behind it: "again", "again other" or nothing
	parts       []func(*model) // one per commit
	takes       befalls
}

// befalls is what can befall a step.
type befalls uint8

const (
	nothing befalls = iota
	aFault          // its commits may meet a fault
	aSecond         // and it may be sent again: it is one commit
)

// one is a step of one commit.
func one(line string, part func(*model)) action {
	return action{line: line, parts: []func(*model){part}, takes: aSecond}
}

// story is a script as a scenario to paste in. Its expected text is filled in by running it with -rewrite.
func story(script []action) string {
	var b strings.Builder
	for _, a := range script {
		fmt.Fprintf(&b, "%s\n%s----\n\n", a.line, a.input)
		if a.again != "" {
			fmt.Fprintf(&b, "%s\n----\n\n", a.again)
		}
	}
	return b.String()
}

// drawer draws actions that make sense, and some that do not, where the model stands.
type drawer struct {
	t *rapid.T
	m *model
}

var (
	topics   = []string{"mail", "sms", "push"}
	givenIDs = []string{"given-1", "given-2", "given-3"}
	lengths  = []time.Duration{time.Second, 5 * time.Second, time.Minute, time.Hour}
	faults   = []string{"twice", "lost-after", "lost-before", "late", "fail"}
)

// action draws a step, with what befalls its commit.
func (d drawer) action() action {
	kinds := []func() action{
		d.claim, d.settle, d.enqueue, d.advance, d.reclaim, d.operate, d.topic, d.worker, d.together, d.worker, d.operate,
		d.lock, d.lock, d.process, d.process, d.sweep, d.sweep, d.clock, d.beat, d.prune, d.erase,
	}
	if d.has("queued") {
		kinds = append(kinds, d.claim, d.claim, d.claim)
	} else {
		kinds = append(kinds, d.enqueue, d.enqueue)
	}
	if d.has("running") {
		kinds = append(kinds, d.settle, d.settle, d.settle)
	}
	if len(d.rivals()) > 0 {
		kinds = append(kinds, d.operate, d.operate, d.operate, d.operate)
	}
	if len(d.uncounted()) > 0 {
		kinds = append(kinds, d.topic, d.topic)
	}
	a := of(d, kinds)()
	if a.takes >= aFault && d.one(5) {
		fault := of(d, faults)
		// A refused call of several whose answer was lost is decided anew, behind the others: the model does not follow that.
		if len(a.parts) == 1 || fault != "lost-after" {
			a.line += " fault=" + fault
		}
	}
	if a.takes >= aSecond && d.one(5) {
		a.again = of(d, []string{"again", "again other"})
	}
	return a
}

// fair draws ten bits. Rapid's own numbers prefer small ones, and its choices the first of a list.
var fair = rapid.Custom(func(t *rapid.T) int {
	n := 0
	for range 10 {
		n *= 2
		if rapid.Bool().Draw(t, "bit") {
			n++
		}
	}
	return n
})

// pick draws one of n.
func (d drawer) pick(n int) int { return fair.Draw(d.t, "pick") % n }

func of[T any](d drawer, list []T) T { return list[d.pick(len(list))] }

// one is true in one of n cases.
func (d drawer) one(n int) bool { return d.pick(n) == n-1 }

func (d drawer) number(from, to int) int { return from + d.pick(to-from+1) }

func (d drawer) length() time.Duration { return of(d, lengths) }

func (d drawer) has(state string) bool {
	return slices.ContainsFunc(d.m.messages, func(msg *message) bool { return msg.state == state })
}

// message draws a message, in most cases one in the given state.
func (d drawer) message(state string) string {
	var fit, all []string
	for _, msg := range d.m.messages {
		all = append(all, msg.name)
		if msg.state == state {
			fit = append(fit, msg.name)
		}
	}
	switch {
	case len(all) == 0 || d.one(16):
		return "nobody"
	case len(fit) == 0 || d.one(6):
		return of(d, all)
	}
	return of(d, fit)
}

// anyWorker draws a worker that has been heard of, or one that has not.
func (d drawer) anyWorker() string {
	list := []string{"ghost"}
	for i := range d.m.started {
		list = append(list, fmt.Sprintf("w%d", i+1))
	}
	return of(d, list)
}

func (d drawer) advance() action {
	by := of(d, append([]time.Duration{beatEvery}, lengths...))
	return action{line: "advance " + by.String(), parts: []func(*model){func(m *model) { m.advance(by) }}}
}

func (d drawer) enqueue() action {
	var drafts []draft
	var input strings.Builder
	for range d.number(1, 3) {
		one := d.draft()
		drafts = append(drafts, one)
		fmt.Fprintln(&input, one.line())
	}
	a := one("enqueue", func(m *model) { m.enqueue(drafts) })
	a.input = input.String()
	return a
}

func (d drawer) draft() draft {
	one := draft{topic: of(d, topics), limit: -1, n: d.number(1, 3)}
	if d.one(4) {
		one.limit = d.number(0, 3)
	}
	one.unseen = d.one(8)
	// What went before the story began tells nothing of ids that are as old as the story.
	if d.one(5) && (d.m.pruned.at == never || d.m.pruned.at >= 0) {
		one.id, one.n = of(d, givenIDs), 1
	}
	if d.one(3) {
		one.payload = of(d, []string{"a", "bb"})
	}
	if d.one(2) {
		one.key = of(d, []string{"k1", "k1", "k2"})
		if d.one(2) {
			one.unique = d.length()
		}
	}
	switch d.number(1, 6) {
	case 5:
		one.delay = d.length()
	case 6:
		one.due = d.length() * time.Duration(d.number(1, 3))
	}
	one.priority = of(d, events.Priorities())
	one.most = of(d, []int{0, 1, 2, 3})
	if d.one(4) {
		one.base = 3 * time.Second
	}
	one.orphanMost = of(d, []int{0, 0, 0, 1, 3})
	if d.one(2) {
		one.lock, one.skips = of(d, locks), d.one(4)
	}
	return one
}

func (d draft) line() string {
	line := fmt.Sprintf("%s n=%d", d.topic, d.n)
	f := fields{line}
	if d.limit >= 0 {
		f.text += fmt.Sprintf(" limit=%d", d.limit)
	}
	if d.unseen {
		f.text += " unseen"
	}
	if d.priority != events.Normal {
		f = f.str("priority", d.priority.String())
	}
	f = f.str("id", d.id).str("payload", d.payload).str("key", d.key).dur("unique-for", d.unique)
	f = f.dur("delay", d.delay).dur("due", d.due).num("max-attempts", d.most).dur("backoff-base", d.base)
	if f = f.num("orphan-max-attempts", d.orphanMost).str("lock", d.lock); d.skips {
		f = f.str("on-locked", "skip")
	}
	return f.text
}

func (d drawer) claim() action {
	by := d.holder()
	var asks []ask
	f := fields{"claim " + by}
	for _, topic := range topics {
		if d.one(2) {
			a := ask{topic, d.number(1, 4)}
			asks = append(asks, a)
			f = f.num(a.topic, a.n)
		}
	}
	most := 0
	if d.one(4) {
		most = d.number(1, 3)
	}
	return one(f.num("most", most).text, func(m *model) { m.claim(by, asks, most) })
}

func (d drawer) settle() action {
	s := settlement{recordable: 60}
	var input strings.Builder
	for range d.number(1, 3) {
		it := d.item()
		s.items = append(s.items, it)
		fmt.Fprintln(&input, it.line())
	}
	line := fields{"settle"}
	if d.one(6) {
		line.text += " held"
	}
	if d.one(4) {
		s.recordable, s.unrecorded = d.number(0, 2), d.number(0, 3)
		line.text += fmt.Sprintf(" recordable=%d", s.recordable)
		line = line.num("unrecorded", s.unrecorded)
	}
	if d.one(4) {
		s.from = d.anyWorker()
		line = line.str("from", s.from)
	}
	a := one(line.text, func(m *model) { m.settle(s) })
	a.input = input.String()
	return a
}

func (d drawer) item() item {
	it := item{command: of(d, []string{"complete", "fail", "release", "dead-letter", "cancel"}), message: d.message("running")}
	if d.one(5) {
		it.token = d.number(1, 12)
	}
	switch it.command {
	case "complete":
		it.result = of(d, []string{"", "", "done"})
	case "fail":
		it.jitter = d.number(-100, 100)
		it.text = "boom"
	case "dead-letter":
		it.text = "broken"
	case "release":
		it.reason = of(d, []string{"released", "snoozed", "unclaimed"})
		if it.reason == "snoozed" {
			it.delay = d.length()
		}
	}
	return it
}

func (it item) line() string {
	f := fields{it.command + " " + it.message}
	return f.num("token", it.token).str("error", it.text).str("reason", it.reason).dur("delay", it.delay).num("jitter", it.jitter).str("result", it.result).text
}

func (d drawer) operate() action {
	command := of(d, []string{"cancel", "take-back", "redrive", "redrive"})
	rivals := d.rivals()
	if len(rivals) > 0 && d.one(2) {
		command = "redrive"
	}
	state := map[string]string{"cancel": of(d, []string{"queued", "queued", "dead_lettered"}), "take-back": "running", "redrive": "dead_lettered"}[command]
	var names []string
	for range d.number(1, 2) {
		names = append(names, d.message(state))
	}
	if command == "redrive" && len(rivals) > 0 {
		names[0] = of(d, rivals)
	}
	if lock := d.m.message(names[0]).lock; len(names) == 2 && lock != "" && lock == d.m.message(names[1]).lock {
		names = names[:1] // a command does not know who waits behind the first of a lock's waiters, so it ends no two of them
	}
	w := wish{command: command, names: names, by: "ann", after: 2 * time.Minute}
	line := fields{command + " " + strings.Join(names, " ") + " by=ann"}
	if command == "take-back" && d.one(2) {
		w.force = true
		line = line.str("force", "yes")
	}
	if d.one(2) {
		w.after = sweepAfter
		line = line.dur("after", w.after)
	}
	return one(line.text, func(m *model) { m.operate(w) })
}

// rivals are the dead letters whose key another message has.
func (d drawer) rivals() []string {
	var list []string
	for _, msg := range d.m.messages {
		h, known := d.m.keys[key{msg.topic, msg.key}]
		if msg.state == "dead_lettered" && msg.key != "" && known && h.message != msg.name && h.taken(d.m.now) {
			list = append(list, msg.name)
		}
	}
	return list
}

// uncounted are the topics with open claims that do not count.
func (d drawer) uncounted() []string {
	var list []string
	for _, msg := range d.m.messages {
		if msg.state == "running" && !msg.counted {
			list = append(list, msg.topic)
		}
	}
	return list
}

func (d drawer) topic() action {
	name := of(d, topics)
	if list := d.uncounted(); len(list) > 0 && d.one(2) {
		name = of(d, list)
	}
	kinds := []string{"topic", "topic", "count", "pause", "resume"}
	switch t := d.m.topic(name); {
	case t.counting:
		kinds = append(kinds, "count", "count", "count")
	case t.state == "paused":
		kinds = append(kinds, "resume", "resume", "resume")
	}
	switch of(d, kinds) {
	case "topic":
		limit := d.number(0, 3)
		return one(fmt.Sprintf("topic %s limit=%d by=ann", name, limit), func(m *model) { m.configure(name, limit, "ann") })
	case "pause":
		return one("pause "+name+" by=ann", func(m *model) { m.pause(name, "ann") })
	case "resume":
		return one("resume "+name+" by=ann", func(m *model) { m.resume(name, "ann") })
	}
	page := d.number(1, 4)
	return one(fmt.Sprintf("count %s page=%d", name, page), func(m *model) { m.count(name, page) })
}

func (d drawer) worker() action {
	name := d.anyWorker()
	commands := []string{"start", "stop", "lose", "return", "return", "gap", "purge"}
	if d.m.started < 2 {
		commands = []string{"start"}
	}
	command := of(d, commands)
	line := "worker-" + command + " " + name
	switch command {
	case "start":
		return d.start(name)
	case "stop":
		return one(line, func(m *model) { m.stopWorker(name) })
	case "purge":
		ttl := d.length()
		return one(line+" ttl="+ttl.String(), func(m *model) { m.purgeWorker(name, ttl) })
	case "gap":
		from, to := time.Second, d.length()*2
		return one(line+fmt.Sprintf(" from=%s to=%s", from, to), func(m *model) { m.operateWorker("gap-worker", name, from, to) })
	}
	return one(line, func(m *model) { m.operateWorker(command+"-worker", name, 0, 0) })
}

// start draws the start of a worker that nobody knows, or of one that was there before.
func (d drawer) start(name string) action {
	s := start{interval: of(d, []time.Duration{beatEvery, beatEvery, beatEvery, 0}), proof: d.one(3)}
	if s.interval > 0 {
		s.fence = of(d, []time.Duration{2 * beatEvery, 0, 6 * beatEvery})
	}
	f := fields{"worker-start"}
	if name == "ghost" || d.one(2) || slices.Contains(d.m.pruned.workers, name) { // no incarnation comes twice
		name = ""
	} else {
		f.text += " " + name
	}
	if f = f.dur("interval", s.interval).dur("fence", s.fence); s.proof {
		f = f.str("proof", "yes")
	}
	return one(f.text, func(m *model) {
		who := name
		if who == "" {
			m.started++
			who = fmt.Sprintf("w%d", m.started)
		}
		m.startWorker(who, s)
	})
}

func (d drawer) reclaim() action {
	name, by := d.anyWorker(), d.anyWorker()
	limit := of(d, []int{5, 1, 2, 0})
	page := of(d, []int{100, 1, 2})
	line := fmt.Sprintf("reclaim %s by=%s limit=%d page=%d", name, by, limit, page)
	return one(line, func(m *model) { m.reclaim(name, by, limit, page) })
}

// result draws the end of one claim that says everything itself: in a commit of several steps, what is known is what was known before.
func (d drawer) result() action {
	it := d.item()
	// Nor is it known which permit a claim takes that comes before it: nobody who handles a message with a lock guesses a token.
	if msg := d.m.message(it.message); it.token == 0 || msg.lock != "" {
		it.token = max(msg.last, 1)
	}
	s := settlement{items: []item{it}, from: d.anyWorker(), recordable: 60}
	return one(it.line()+" from="+s.from, func(m *model) { m.settle(s) })
}

func (d drawer) enqueueOne() action {
	draft1 := d.draft()
	return one("enqueue "+draft1.line(), func(m *model) { m.enqueue([]draft{draft1}) })
}

// together draws several steps that are one commit.
func (d drawer) together() action {
	all := action{line: "together", takes: aSecond}
	kinds := []func() action{d.result, d.claim, d.operate, d.reclaim, d.topic, d.lock}
	if d.one(3) {
		// Pages of claims are in the order of ids, which the model does not know before the commit that makes them.
		kinds = []func() action{d.result, d.claim, d.operate, d.enqueueOne}
	}
	for range d.number(2, 3) {
		a := of(d, kinds)()
		all.input += a.line + "\n"
		all.parts = append(all.parts, a.parts...)
	}
	return all
}
