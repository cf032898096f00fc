package fsm_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBackoff(t *testing.T) {
	const s = time.Second
	tests := []struct {
		base, ceiling time.Duration
		spent, jitter int
		want          time.Duration
	}{
		{1 * s, 0, 2, 0, 4 * s},
		{2 * s, 0, 3, 0, 16 * s},
		{5 * s, 0, 1, 0, 10 * s},
		{0, 0, 0, 0, 1 * s},
		{0, 0, 1, 0, 2 * s},
		{0, 0, 16, 0, 65536 * s},
		{0, 0, 17, 0, 24 * time.Hour},
		{1 * s, time.Minute, 5, 0, 32 * s},
		{1 * s, time.Minute, 6, 0, time.Minute},
		{1 * s, 0, 1 << 30, 0, 24 * time.Hour},
		{1, 0, 62, 0, 24 * time.Hour},
		{1, 0, 63, 0, 24 * time.Hour},
		{1, 0, 64, 0, 24 * time.Hour},
		{math.MaxInt64, 0, 1, 0, 24 * time.Hour},
		{time.Hour, time.Minute, 0, 0, time.Minute},
		{10 * s, 0, 0, 100, 11 * s},
		{10 * s, 0, 0, -100, 9 * s},
		{10 * s, 0, 0, 1, 10*s + 10*time.Millisecond},
		{1 * s, time.Minute, 9, fsm.MaxJitter, 66 * s},
		{math.MaxInt64, math.MaxInt64, 1 << 30, 0, math.MaxInt64 / 2},
	}
	for _, tt := range tests {
		got := fsm.Backoff(events.Limits{BackoffBase: tt.base, BackoffMax: tt.ceiling}, tt.spent, tt.jitter)
		if got != tt.want {
			t.Errorf("base %s, at most %s, spent %d, jitter %d: %s, want %s", tt.base, tt.ceiling, tt.spent, tt.jitter, got, tt.want)
		}
	}
}

// No delay is negative, and none leaves the ten percent around base × 2^spent or the ceiling, whatever was spent.
func TestBackoffStaysInBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limits := events.Limits{
			BackoffBase: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(rt, "base")),
			BackoffMax:  time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(rt, "ceiling")),
		}
		spent := rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 1<<30)).Draw(rt, "spent")
		jitter := rapid.IntRange(-fsm.MaxJitter, fsm.MaxJitter).Draw(rt, "jitter")
		bare := fsm.Backoff(limits, spent, 0)
		exact := math.Ldexp(float64(limits.BackoffBase), spent)
		want := min(exact, float64(limits.BackoffMax), math.MaxInt64/2)
		if diff := math.Abs(float64(bare) - want); diff > want/1e9+1 {
			rt.Errorf("%+v, spent %d: %s, want %s", limits, spent, bare, time.Duration(want))
		}
		got := fsm.Backoff(limits, spent, jitter)
		if got < bare-bare/10 || got > bare+bare/10 {
			rt.Errorf("%+v, spent %d, jitter %d: %s is more than a tenth from %s", limits, spent, jitter, got, bare)
		}
	})
}

// The failure after the last attempt is final, and every one before it is tried again.
func TestExhaustion(t *testing.T) {
	tests := []struct{ limit, tries int }{{1, 1}, {2, 2}, {3, 3}, {0, fsm.DefaultMaxAttempts}}
	for _, tt := range tests {
		m := queued(t, events.Limits{MaxAttempts: tt.limit, BackoffBase: 1, BackoffMax: 1})
		at := now
		for try := 1; try <= tt.tries; try++ {
			at = at.Add(time.Second)
			m, _ = decide(t, m, fsm.ClaimMessage{Worker: workerA}, at)
			if m.Attempts != try || m.Spent() != try {
				t.Errorf("limit %d, claim %d: attempts %d, spent %d", tt.limit, try, m.Attempts, m.Spent())
			}
			m, _ = decide(t, m, fsm.FailMessage{Token: m.Token, Error: "no"}, at)
			if want := try == tt.tries; want != (m.State == events.DeadLettered) || m.Failures != try {
				t.Errorf("limit %d, failure %d: %s with %d failures", tt.limit, try, m.State, m.Failures)
			}
		}
	}
}

func TestFailureEvents(t *testing.T) {
	limits := events.Limits{MaxAttempts: 2, BackoffBase: 3 * time.Second}
	m := claim(t, queued(t, limits))
	m, list := decide(t, m, fsm.FailMessage{Token: 2, Error: "no", Jitter: 50}, now)
	want := []events.Event{&events.MessageRequeued{
		Reason: events.ReasonRetry, Token: 2, Error: "no", Jitter: 50, DueAt: now.Add(6300 * time.Millisecond),
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("first failure (-want +got):\n%s", diff)
	}
	early := refusal(t, m, fsm.ClaimMessage{Worker: workerA})
	if early.Reason != events.ReasonWrongState || !strings.Contains(early.Error(), "not due before 2026-01-02T03:04:11.3Z") {
		t.Errorf("a claim before the backoff is over: %v", early)
	}
	m, _ = decide(t, m, fsm.ClaimMessage{Worker: workerB}, m.DueAt)
	m, list = decide(t, m, fsm.FailMessage{Token: 4, Error: "no again", Jitter: 50}, m.DueAt)
	want = []events.Event{&events.MessageDeadLettered{Reason: events.ReasonExhausted, Token: 4, Error: "no again"}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("second failure (-want +got):\n%s", diff)
	}
	if m.Worker != (events.ID{}) || m.Token != 0 || !m.ClaimedAt.IsZero() || m.Open() || !m.Live() {
		t.Errorf("the dead letter is %+v", m)
	}
}

// Scenarios A09, A10 and A11: every claim counts towards the orphan limit, however it ended.
func TestOrphanLimit(t *testing.T) {
	orphan := fsm.OrphanMessage{Evidence: events.Evidence{Reason: events.ReasonProcessGone, Claimer: workerA, Limit: 5}}
	limits := events.Limits{BackoffBase: 1, BackoffMax: 1}
	for _, first := range []string{"orphaned", "failed"} {
		m, at := queued(t, limits), now
		for try := 1; try <= 5; try++ {
			at = at.Add(time.Second)
			m, _ = decide(t, m, fsm.ClaimMessage{Worker: workerA}, at)
			if first == "failed" && try < 5 {
				m, _ = decide(t, m, fsm.FailMessage{Token: m.Token}, at)
				continue
			}
			var list []events.Event
			m, list = decide(t, m, orphan, at)
			if len(list) != 2 || list[0].Type() != events.TypeMessageOrphaned {
				t.Fatalf("%s, claim %d: %d events, want orphaned and what follows", first, try, len(list))
			}
			if want := try == 5; want != (m.State == events.DeadLettered) {
				t.Errorf("%s, claim %d: %s", first, try, m.State)
			}
		}
		dead := m
		if r := refusal(t, dead, fsm.ClaimMessage{Worker: workerB}); r.Reason != events.ReasonWrongState {
			t.Errorf("%s: the dead letter refuses a claim with %s", first, r.Reason)
		}
		if first == "orphaned" && (dead.Orphanings != 5 || dead.Failures != 0) {
			t.Errorf("five orphanings are counted as %d, with %d failures", dead.Orphanings, dead.Failures)
		}
	}
}

func TestOrphanedEvents(t *testing.T) {
	evidence := events.Evidence{Reason: events.ReasonProcessGone, Claimer: workerA, Decider: workerB, LastBeatAt: now, Limit: 2}
	m, list := decide(t, claim(t, queued(t, events.Limits{})), fsm.OrphanMessage{Evidence: evidence}, now)
	want := []events.Event{
		&events.MessageOrphaned{Token: 2, Evidence: evidence},
		&events.MessageRequeued{Reason: events.ReasonOrphan, Token: 2},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("below the limit (-want +got):\n%s", diff)
	}
	if m.Failures != 0 || m.Orphanings != 1 || m.Spent() != 1 || !m.DueAt.Equal(now) {
		t.Errorf("requeued as %+v", m)
	}
	_, list = decide(t, claim(t, m), fsm.OrphanMessage{Evidence: evidence}, now)
	want = []events.Event{
		&events.MessageOrphaned{Token: 5, Evidence: evidence},
		&events.MessageDeadLettered{Reason: events.ReasonOrphanLimit, Token: 5},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("at the limit (-want +got):\n%s", diff)
	}
}

// An orphan limit of 0 is none; the one in force comes with the evidence.
func TestNoOrphanLimit(t *testing.T) {
	m := claim(t, queued(t, events.Limits{}))
	m.Attempts = 1000
	m = after(t, m, fsm.OrphanMessage{Evidence: events.Evidence{Claimer: workerA}})
	if m.State != events.Queued {
		t.Errorf("an orphan without a limit is %s", m.State)
	}
}

// What a graceful stop, a snooze or an unknown claim gives back spends no attempt.
func TestReleasesSpendNothing(t *testing.T) {
	for _, reason := range []events.Reason{events.ReasonReleased, events.ReasonSnoozed, events.ReasonUnclaimed} {
		m := queued(t, events.Limits{MaxAttempts: 1})
		for range 10 {
			m = claim(t, m)
			m = after(t, m, fsm.ReleaseMessage{Token: m.Token, Reason: reason})
		}
		if m.Attempts != 10 || m.Releases != 10 || m.Spent() != 0 || m.Failures != 0 || m.State != events.Queued {
			t.Errorf("%s ten times: %+v", reason, m)
		}
		m = claim(t, m)
		if m = after(t, m, fsm.FailMessage{Token: m.Token}); m.State != events.DeadLettered {
			t.Errorf("%s: a failure of the one attempt leaves it %s", reason, m.State)
		}
	}
}

func TestSnooze(t *testing.T) {
	m, list := decide(t, claim(t, queued(t, events.Limits{})), fsm.ReleaseMessage{
		Token: 2, Reason: events.ReasonSnoozed, Delay: time.Hour,
	}, now)
	want := []events.Event{&events.MessageRequeued{Reason: events.ReasonSnoozed, Token: 2, DueAt: now.Add(time.Hour)}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	refusal(t, m, fsm.ClaimMessage{Worker: workerB})
	m, _ = decide(t, m, fsm.ClaimMessage{Worker: workerB}, now.Add(time.Hour))
	if m.Attempts != 2 || m.Spent() != 1 {
		t.Errorf("claimed again: attempts %d, spent %d", m.Attempts, m.Spent())
	}
}

// A message that is given back without a delay keeps its place: it is due since it first was.
func TestReleasedKeepsItsPlace(t *testing.T) {
	m := after(t, fsm.Message{ID: thisID}, fsm.EnqueueMessage{Topic: "mail", DueAt: now.Add(time.Minute)})
	m, _ = decide(t, m, fsm.ClaimMessage{Worker: workerA}, now.Add(time.Hour))
	for _, c := range []fsm.MessageCommand{
		fsm.ReleaseMessage{Token: 2, Reason: events.ReasonReleased},
		fsm.TakeBackMessage{},
		fsm.OrphanMessage{Evidence: events.Evidence{Claimer: workerA}},
	} {
		if back, _ := decide(t, m, c, now.Add(2*time.Hour)); !back.DueAt.Equal(now.Add(time.Minute)) {
			t.Errorf("%s: due at %s", c.Name(), back.DueAt)
		}
	}
}

func TestTakeBackSpendsTheAttempt(t *testing.T) {
	m, list := decide(t, claim(t, queued(t, events.Limits{})), fsm.TakeBackMessage{By: "ops", Detail: "stuck"}, now)
	want := []events.Event{&events.MessageRequeued{Reason: events.ReasonTakenBack, Token: 2, By: "ops", Detail: "stuck"}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m.Spent() != 1 || m.Failures != 0 || m.Releases != 0 {
		t.Errorf("taken back: %+v", m)
	}
}

func TestEnqueued(t *testing.T) {
	tests := []struct {
		name     string
		command  fsm.EnqueueMessage
		recorded time.Time // in the event; zero is at once
		due      time.Time
	}{
		{"at once", fsm.EnqueueMessage{}, time.Time{}, now},
		{"later", fsm.EnqueueMessage{DueAt: now.Add(time.Hour)}, now.Add(time.Hour), now.Add(time.Hour)},
		{"in the past", fsm.EnqueueMessage{DueAt: now.Add(-time.Hour)}, time.Time{}, now},
		{"after a delay", fsm.EnqueueMessage{Delay: time.Minute}, now.Add(time.Minute), now.Add(time.Minute)},
		{"a time wins over a delay", fsm.EnqueueMessage{DueAt: now.Add(time.Second), Delay: time.Minute}, now.Add(time.Second), now.Add(time.Second)},
		{"a time is cut to microseconds", fsm.EnqueueMessage{DueAt: now.Add(2001)}, now.Add(2000), now.Add(2000)},
		{"a delay is cut to microseconds", fsm.EnqueueMessage{Delay: 3999}, now.Add(3000), now.Add(3000)},
		{"less than a microsecond is at once", fsm.EnqueueMessage{DueAt: now.Add(999)}, time.Time{}, now},
	}
	for _, tt := range tests {
		m, list := decide(t, fsm.Message{ID: thisID}, tt.command, now)
		if e := list[0].(*events.MessageEnqueued); !e.DueAt.Equal(tt.recorded) {
			t.Errorf("%s: recorded as due %s, want %s", tt.name, e.DueAt, tt.recorded)
		}
		if !m.DueAt.Equal(tt.due) || !m.EnqueuedAt.Equal(now) {
			t.Errorf("%s: due %s, enqueued %s", tt.name, m.DueAt, m.EnqueuedAt)
		}
	}
}

// A redrive starts every budget anew, says what was spent, and rewrites no count.
func TestRedriveRestartsBudgets(t *testing.T) {
	evidence := events.Evidence{Claimer: workerA, Limit: 5}
	m := queued(t, events.Limits{MaxAttempts: 2, BackoffBase: 1, BackoffMax: 1})
	at := now
	try := func(c func(events.Token) fsm.MessageCommand) {
		t.Helper()
		at = at.Add(time.Second)
		m, _ = decide(t, m, fsm.ClaimMessage{Worker: workerA}, at)
		m, _ = decide(t, m, c(m.Token), at)
	}
	fail := func(token events.Token) fsm.MessageCommand { return fsm.FailMessage{Token: token} }
	try(func(token events.Token) fsm.MessageCommand {
		return fsm.ReleaseMessage{Token: token, Reason: events.ReasonReleased}
	})
	try(func(events.Token) fsm.MessageCommand { return fsm.OrphanMessage{Evidence: evidence} })
	try(fail)
	if m.State != events.DeadLettered || m.Attempts != 3 || m.Spent() != 2 {
		t.Fatalf("after two spent attempts: %+v", m)
	}

	m, list := decide(t, m, fsm.RedriveMessage{By: "ops", Detail: "fixed"}, at)
	want := []events.Event{&events.MessageRedriven{By: "ops", Detail: "fixed", Spent: 2, Orphanings: 1}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("first redrive (-want +got):\n%s", diff)
	}
	if m.Spent() != 0 || m.Attempts != 3 || m.Releases != 1 || m.Failures != 1 || m.Orphanings != 1 || !m.DueAt.Equal(at) {
		t.Errorf("redriven: %+v", m)
	}
	try(fail)
	if m.State != events.Queued || m.Spent() != 1 {
		t.Errorf("the first failure of the new series leaves it %s with %d spent", m.State, m.Spent())
	}
	try(fail)
	_, list = decide(t, m, fsm.RedriveMessage{}, at)
	if diff := cmp.Diff([]events.Event{&events.MessageRedriven{Spent: 2}}, list); diff != "" {
		t.Errorf("second redrive (-want +got):\n%s", diff)
	}
}

// The orphan limit counts from the redrive too.
func TestRedriveRestartsTheOrphanLimit(t *testing.T) {
	for _, count := range []events.OrphanCount{events.CountClaims, events.CountOrphanings} {
		orphan := fsm.OrphanMessage{Evidence: events.Evidence{Claimer: workerA, Limit: 1, Count: count}}
		m := after(t, claim(t, queued(t, events.Limits{})), orphan, fsm.RedriveMessage{})
		orphan.Evidence.Limit = 2
		if m = after(t, claim(t, m), orphan); m.State != events.Queued {
			t.Errorf("counting %s, the first orphaning of the new series leaves it %s", count, m.State)
		}
		if m.State != events.Queued {
			continue
		}
		if m = after(t, claim(t, m), orphan); m.State != events.DeadLettered {
			t.Errorf("counting %s, the second orphaning of the new series leaves it %s", count, m.State)
		}
	}
}

// callbacks are the commands that only the holder of a claim may send.
func callbacks(token events.Token) []fsm.MessageCommand {
	return []fsm.MessageCommand{
		fsm.CompleteMessage{Token: token},
		fsm.FailMessage{Token: token},
		fsm.ReleaseMessage{Token: token, Reason: events.ReasonReleased},
		fsm.DeadLetterMessage{Token: token},
		fsm.CancelMessage{Token: token},
	}
}

// Scenarios A15 and A16: the holder of a claim that was taken back comes too late, whatever became of the message since.
func TestLateCallbacks(t *testing.T) {
	running := claim(t, queued(t, events.Limits{}))
	requeued := after(t, running, fsm.OrphanMessage{Evidence: events.Evidence{Claimer: workerA}})
	again := after(t, requeued, fsm.ClaimMessage{Worker: workerB})
	tests := []struct {
		name    string
		message fsm.Message
		found   events.Token
	}{
		{"requeued and not claimed yet", requeued, 0},
		{"claimed by another", again, 5},
		{"completed by another", after(t, again, fsm.CompleteMessage{Token: 5}), 0},
		{"dead-lettered by another", after(t, again, fsm.DeadLetterMessage{Token: 5}), 0},
		{"cancelled", after(t, again, fsm.CancelMessage{}), 0},
	}
	for _, tt := range tests {
		for _, c := range callbacks(running.Token) {
			r := refusal(t, tt.message, c)
			want := &fsm.Refusal{
				Command: c.Name(), Entity: events.MessageEntity(thisID), State: tt.message.State,
				Reason: events.ReasonWrongState, Sent: running.Token, Found: tt.found,
			}
			// Where the state itself allows the command, it is the token that is wrong.
			if _, cancel := c.(fsm.CancelMessage); r.State == events.Running || r.State == events.Queued && cancel {
				want.Reason = events.ReasonStaleToken
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tt.name, c.Name(), diff)
			}
		}
	}
	for _, c := range callbacks(again.Token) {
		if _, err := again.Decide(c, now); err != nil {
			t.Errorf("%s by the holder: %v", c.Name(), err)
		}
		if r := refusal(t, fsm.Message{ID: thisID}, c); r.Reason != events.ReasonNotFound || r.Sent != again.Token {
			t.Errorf("%s of a message that nobody knows: %+v", c.Name(), r)
		}
	}
}

// Tokens rise with every claim, and are the version at the claim.
func TestTokensRise(t *testing.T) {
	m, last := queued(t, events.Limits{}), events.Token(0)
	for range 5 {
		m = claim(t, m)
		if m.Token <= last || int(m.Token) != m.Version {
			t.Errorf("token %d at version %d after token %d", m.Token, m.Version, last)
		}
		last = m.Token
		m = after(t, m, fsm.ReleaseMessage{Token: m.Token, Reason: events.ReasonReleased})
	}
}

func TestCancel(t *testing.T) {
	waiting := queued(t, events.Limits{})
	running := claim(t, waiting)
	byOperator, byHandler := fsm.CancelMessage{By: "ops", Detail: "why"}, fsm.CancelMessage{Token: 2, Detail: "moot"}
	tests := []struct {
		name    string
		message fsm.Message
		command fsm.CancelMessage
		want    events.MessageCancelled
	}{
		{"a waiting one", waiting, byOperator, events.MessageCancelled{Reason: events.ReasonOperator, By: "ops", Detail: "why"}},
		{"a running one", running, byOperator, events.MessageCancelled{Reason: events.ReasonOperator, Token: 2, By: "ops", Detail: "why"}},
		{"by its handler", running, byHandler, events.MessageCancelled{Reason: events.ReasonHandler, Token: 2, Detail: "moot"}},
	}
	for _, tt := range tests {
		m, list := decide(t, tt.message, tt.command, now)
		if diff := cmp.Diff([]events.Event{&tt.want}, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if m.State != events.Cancelled || m.Open() || m.Live() || m.Worker != (events.ID{}) || m.Failures != 0 {
			t.Errorf("%s: %+v", tt.name, m)
		}
	}
}

// What ends an open claim leaves no trace of it; what does not, keeps it.
func TestEndedClaimsAreGone(t *testing.T) {
	m := after(t, queued(t, events.Limits{}), fsm.ClaimMessage{Worker: workerA, Counted: true, Running: 1, Limit: 1})
	if !m.Counted || m.Worker != workerA || m.Token != 2 || !m.ClaimedAt.Equal(now) {
		t.Fatalf("claimed: %+v", m)
	}
	enders := append(callbacks(2), fsm.TakeBackMessage{}, fsm.CancelMessage{}, fsm.OrphanMessage{Evidence: events.Evidence{Claimer: workerA}})
	for _, c := range enders {
		ended := after(t, m, c)
		if ended.Counted || ended.Worker != (events.ID{}) || ended.Token != 0 || !ended.ClaimedAt.IsZero() {
			t.Errorf("%s leaves %+v", c.Name(), ended)
		}
	}
	uncounted := claim(t, queued(t, events.Limits{}))
	if uncounted.Counted {
		t.Error("a claim of a topic without a limit is counted")
	}
	if counted := after(t, uncounted, fsm.CountMessage{}); !counted.Counted || counted.Token != 2 || counted.Worker != workerA {
		t.Errorf("counted: %+v", counted)
	}
}

func TestRefusalIsAnError(t *testing.T) {
	r := refusal(t, claim(t, queued(t, events.Limits{})), fsm.CompleteMessage{Token: 1})
	want := fmt.Sprintf("complete refused: message/%s is running: stale_token (token 1 sent, 2 is current)", thisID)
	if r.Error() != want {
		t.Errorf("%q, want %q", r, want)
	}
	for target, want := range map[*fsm.Refusal]bool{
		{Reason: events.ReasonStaleToken}:                      true,
		{Reason: events.ReasonStaleToken, Command: "complete"}: true,
		{Reason: events.ReasonStaleToken, Command: "fail"}:     false,
		{Reason: events.ReasonWrongState}:                      false,
	} {
		if errors.Is(fmt.Errorf("wrapped: %w", r), target) != want {
			t.Errorf("is %+v: want %v", target, want)
		}
	}
	if errors.Is(r, errors.New("another")) {
		t.Error("a refusal is any error")
	}
}

// What a handler gave back is told by the event that ends the message.
func TestCompletedTellsItsResult(t *testing.T) {
	result := events.Facts{Size: 2, Codec: "json", Commitment: [32]byte{1}}
	m := claim(t, queued(t, events.Limits{}))
	_, list := decide(t, m, fsm.CompleteMessage{Token: 2, Result: result}, now)
	if diff := cmp.Diff([]events.Event{&events.MessageCompleted{Token: 2, Result: result}}, list); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A dead letter is cancelled by an operator though another message has its key by now: it does not open again.
func TestCancelOfADeadLetterWhoseKeyIsTaken(t *testing.T) {
	m := messageIn(events.DeadLettered)
	m.Key = "k"
	held := fsm.Held{
		Now: now, Messages: map[events.ID]fsm.Message{m.ID: m},
		Keys: map[fsm.Key]fsm.KeyHolder{{Topic: "mail", Name: "k"}: {Message: events.ID{9}, Open: true}},
	}
	for _, tt := range []struct {
		command fsm.MessageCommand
		want    bool
	}{{fsm.CancelMessage{By: "ops"}, true}, {fsm.RedriveMessage{By: "ops"}, false}} {
		o, refusals, err := fsm.Operate{IDs: []events.ID{m.ID}, Command: tt.command}.Decide(held)
		if err != nil || (refusals[0] == nil) != tt.want || len(o.Keys) > 0 {
			t.Errorf("%s: %v, %v, keys %v", tt.command.Name(), refusals[0], err, o.Keys)
		}
	}
}
