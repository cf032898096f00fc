package events

import "time"

// LockConfigured : how many permits a lock has from here on. A lock that nobody configured has one.
type LockConfigured struct {
	Permits int
	By      string
	Detail  string
}

// Type is lock.configured.
func (*LockConfigured) Type() Type { return TypeLockConfigured }

// VisitFields names the event's fields.
func (e *LockConfigured) VisitFields(f *Fields) {
	f.Int("permits", &e.Permits)
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}

// LockAcquired : a permit is out.
type LockAcquired struct {
	Token     Token
	Worker    ID        // the incarnation that holds it
	Message   ID        // whose claim took it; zero where it is held without a message
	ExpiresAt time.Time // zero where it has no TTL; a claim's permit never has one
	Held      int       // permits out after it
}

// Type is lock.acquired.
func (*LockAcquired) Type() Type { return TypeLockAcquired }

// VisitFields names the event's fields.
func (e *LockAcquired) VisitFields(f *Fields) {
	f.Token("token", &e.Token)
	f.ID("worker", &e.Worker)
	f.ID("message", &e.Message)
	f.Time("expires", &e.ExpiresAt)
	f.Int("held", &e.Held)
}

// LockReleased : its holder gave a permit back.
type LockReleased struct {
	Token Token
	Held  int // permits out after it
}

// Type is lock.released.
func (*LockReleased) Type() Type { return TypeLockReleased }

// VisitFields names the event's fields.
func (e *LockReleased) VisitFields(f *Fields) {
	f.Token("token", &e.Token)
	f.Int("held", &e.Held)
}

// LockOrphaned : the holder of a permit is gone. The permit is taken back by the next event of the same commit.
type LockOrphaned struct {
	Token    Token
	Evidence Evidence
}

// Type is lock.orphaned.
func (*LockOrphaned) Type() Type { return TypeLockOrphaned }

// VisitFields names the event's fields.
func (e *LockOrphaned) VisitFields(f *Fields) {
	f.Token("token", &e.Token)
	e.Evidence.visit(f)
}

// LockReclaimed : an orphaned permit is back.
type LockReclaimed struct {
	Token Token
	Held  int // permits out after it
}

// Type is lock.reclaimed.
func (*LockReclaimed) Type() Type { return TypeLockReclaimed }

// VisitFields names the event's fields.
func (e *LockReclaimed) VisitFields(f *Fields) {
	f.Token("token", &e.Token)
	f.Int("held", &e.Held)
}

// LockForceReleased : an operator took a permit from its holder, who may still believe in it.
type LockForceReleased struct {
	Token  Token
	Held   int // permits out after it
	By     string
	Detail string
}

// Type is lock.force_released.
func (*LockForceReleased) Type() Type { return TypeLockForceReleased }

// VisitFields names the event's fields.
func (e *LockForceReleased) VisitFields(f *Fields) {
	f.Token("token", &e.Token)
	f.Int("held", &e.Held)
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}

// LockExpired : the time of a permit that was taken with a TTL is over.
type LockExpired struct {
	Token Token
	Held  int // permits out after it
}

// Type is lock.expired.
func (*LockExpired) Type() Type { return TypeLockExpired }

// VisitFields names the event's fields.
func (e *LockExpired) VisitFields(f *Fields) {
	f.Token("token", &e.Token)
	f.Int("held", &e.Held)
}

// LockRefused : a release came too late or from somebody else. It frees nothing and has no version.
type LockRefused struct {
	Command string
	Reason  Reason // not_held
	Sender  ID     // the incarnation that sent it
	Sent    Token
}

// Type is lock.refused.
func (*LockRefused) Type() Type { return TypeLockRefused }

// VisitFields names the event's fields.
func (e *LockRefused) VisitFields(f *Fields) {
	f.Text("command", &e.Command)
	f.Reason("reason", &e.Reason)
	f.ID("sender", &e.Sender)
	f.Token("sent", &e.Sent)
}

// PermitEnd is what an event says of a permit that it ends.
type PermitEnd struct {
	Token Token
	Held  int // permits out after it
}

// EndOf is the end of a permit that an event tells of; false where it tells of none.
func EndOf(event Event) (PermitEnd, bool) {
	switch e := event.(type) {
	case *LockReleased:
		return PermitEnd{e.Token, e.Held}, true
	case *LockReclaimed:
		return PermitEnd{e.Token, e.Held}, true
	case *LockForceReleased:
		return PermitEnd{e.Token, e.Held}, true
	case *LockExpired:
		return PermitEnd{e.Token, e.Held}, true
	}
	return PermitEnd{}, false
}
