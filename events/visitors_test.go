package events_test

import (
	"reflect"
	"time"
	"unicode"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/corpus"
	"pgregory.net/rapid"
)

// everyField is a value with one field of each sort.
type everyField struct {
	Text     string
	Int      int
	Int64    int64
	Token    events.Token
	Time     time.Time
	Duration time.Duration
	Flag     bool
	ID       events.ID
	Reason   events.Reason
	Priority events.Priority
	State    events.State
	Hash     [32]byte
	Texts    []string
	Ints     []int
	IDs      []events.ID
	Raw      []byte
}

func (v *everyField) VisitFields(f *events.Fields) {
	f.Text("text", &v.Text)
	f.Int("int", &v.Int)
	f.Int64("int64", &v.Int64)
	f.Token("token", &v.Token)
	f.Time("time", &v.Time)
	f.Duration("duration", &v.Duration)
	f.Flag("flag", &v.Flag)
	f.ID("id", &v.ID)
	f.Reason("reason", &v.Reason)
	f.Priority("priority", &v.Priority)
	f.State("state", &v.State)
	f.Hash("hash", &v.Hash)
	f.Texts("texts", &v.Texts)
	f.Ints("ints", &v.Ints)
	f.IDs("ids", &v.IDs)
	f.Raw("raw", &v.Raw)
}

// visitors are blank values of everything that is stored by its fields.
func visitors() []events.Visitor {
	list := []events.Visitor{
		new(everyField), new(events.Commit), new(events.Limits), new(events.Facts), new(fsm.Message), new(fsm.Topic), new(fsm.Worker),
		new(fsm.Lock), new(fsm.Leader), new(fsm.Sweep), new(fsm.Clock), new(fsm.Log),
	}
	seen := map[events.Type]bool{}
	for _, s := range corpus.Samples() {
		if typ := s.Event.Type(); !seen[typ] {
			seen[typ] = true
			list = append(list, blank(s.Event))
		}
	}
	return list
}

// blank is a new value of v's type.
func blank(v events.Visitor) events.Visitor {
	return reflect.New(reflect.TypeOf(v).Elem()).Interface().(events.Visitor)
}

var (
	someWords = rapid.OneOf(
		rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune{'a', '\\', '"'}, unicode.Cc, unicode.Cf)),
		rapid.SampledFrom([]string{"", `"`, `\`, "\x00\x1f\n\t\r\x7f", "\u2028\u202e", "a=b c", "𝔘", "\\u0041", "é\uFFFD"}),
	)
	someTimes   = rapid.Map(rapid.Int64Range(-1<<45, 1<<52), func(us int64) time.Time { return time.UnixMicro(us).UTC() })
	someReasons = rapid.SampledFrom([]events.Reason{"", events.ReasonRetry, events.ReasonOrphan, events.ReasonProcessGone})
)

// fill sets every field of a struct to something random that its stored form can hold: whole microseconds, valid UTF-8, a reason of
// the set.
func fill(t *rapid.T, v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = someWords.Draw(t, "text")
	case *bool:
		*p = rapid.Bool().Draw(t, "flag")
	case *int:
		*p = rapid.Int().Draw(t, "int")
	case *int64:
		*p = rapid.Int64().Draw(t, "int64")
	case *events.Token:
		*p = events.Token(rapid.Int64Min(0).Draw(t, "token"))
	case *time.Time:
		*p = someTimes.Draw(t, "time")
		if p.UnixMicro() == 0 {
			*p = time.Time{}
		}
	case *time.Duration:
		*p = time.Duration(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "duration")) * time.Microsecond
	case *events.ID:
		copy(p[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	case *[32]byte:
		copy(p[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
	case *events.Reason:
		*p = someReasons.Draw(t, "reason")
	case *events.Priority:
		*p = rapid.SampledFrom(events.Priorities()).Draw(t, "priority")
	case *events.LockPolicy:
		*p = rapid.SampledFrom([]events.LockPolicy{events.WaitForLock, events.SkipIfLocked}).Draw(t, "policy")
	case *events.OrphanCount:
		*p = rapid.SampledFrom([]events.OrphanCount{events.CountClaims, events.CountOrphanings}).Draw(t, "count")
	case *events.State:
		*p = events.State(rapid.Uint8().Draw(t, "state"))
	case *uint32:
		*p = rapid.Uint32().Draw(t, "uint32")
	case *fsm.EarlierSteps:
		for i := range rapid.IntRange(0, len(p)).Draw(t, "steps") {
			at := rapid.Int64Range(1, 1<<50).Draw(t, "at")
			p[i] = fsm.ClockStep{At: time.UnixMicro(at).UTC(), By: time.Duration(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "by")) * time.Microsecond}
		}
	case *[]string:
		if list := rapid.SliceOfN(someWords, 0, 4).Draw(t, "texts"); len(list) > 0 {
			*p = list
		}
	case *[]int:
		if list := rapid.SliceOfN(rapid.Int(), 0, 4).Draw(t, "ints"); len(list) > 0 {
			*p = list
		}
	case *[]events.ID:
		for range rapid.IntRange(0, 3).Draw(t, "ids") {
			*p = append(*p, events.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")))
		}
	case *[]events.PermitOut:
		for range rapid.IntRange(0, 3).Draw(t, "permits") {
			out := reflect.New(reflect.TypeFor[events.PermitOut]()).Elem()
			fill(t, out)
			*p = append(*p, out.Interface().(events.PermitOut))
		}
	case *[]byte:
		nested := events.Limits{MaxAttempts: rapid.Int().Draw(t, "raw")}
		if rapid.Bool().Draw(t, "raw set") {
			*p = events.AppendFields(nil, &nested)
		}
	default:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	}
}
