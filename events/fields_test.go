package events_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/corpus"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What is written is read as it was, is written again to the same bytes, and is JSON to everybody else.
func TestFieldsRoundTrip(t *testing.T) {
	for _, v := range visitors() {
		t.Run(reflect.TypeOf(v).Elem().String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				value, again := blank(v), blank(v)
				fill(rt, reflect.ValueOf(value).Elem())
				text := events.AppendFields(nil, value)
				if !json.Valid(text) {
					rt.Fatalf("not JSON: %s", text)
				}
				if err := events.ReadFields(text, again); err != nil {
					rt.Fatalf("%s: %v", text, err)
				}
				if second := events.AppendFields(nil, again); !bytes.Equal(text, second) {
					rt.Fatalf("written again:\n%s\nwas\n%s", second, text)
				}
				if _, isEvent := value.(events.Event); isEvent {
					if diff := cmp.Diff(value, again); diff != "" {
						rt.Fatalf("read (-written +read):\n%s", diff)
					}
				}
			})
		})
	}
}

func TestFieldsCutWhatTheFormDoesNotHold(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	v := everyField{
		Text: "a\xff\xfeb", Texts: []string{"\xc3"}, Duration: 1999 * time.Nanosecond,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 678901999, zone),
	}
	want := everyField{
		Text: "a\uFFFDb", Texts: []string{"\uFFFD"}, Duration: time.Microsecond,
		Time: time.Date(2026, 1, 2, 2, 4, 5, 678901000, time.UTC),
	}
	var got everyField
	if err := events.ReadFields(events.AppendFields(nil, &v), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestZeroIsNotWritten(t *testing.T) {
	for _, v := range visitors() {
		if text := events.AppendFields(nil, v); string(text) != "{}" {
			t.Errorf("%T: %s, want {}", v, text)
		}
		if text := new(events.Names).Fields(v); text != "" {
			t.Errorf("%T: prints %q, want nothing", v, text)
		}
	}
}

func TestReadFieldsIsStrict(t *testing.T) {
	id := "019b7ca9-8f2e-7000-8000-0000000100aa"
	zeros := strings.Repeat("A", 43)
	tests := []struct{ name, text, want string }{
		{"nothing", ``, "want an object"},
		{"a list", `[]`, "want an object"},
		{"no end", `{`, "want an object"},
		{"no end after a field", `{"int":1`, "unknown or misplaced"},
		{"bytes behind its end", `{}x`, "behind its end"},
		{"another object behind its end", `{"int":1}{}`, "behind its end"},
		{"unknown field", `{"nobody":1}`, "unknown or misplaced"},
		{"repeated field", `{"int":1,"int":1}`, "unknown or misplaced"},
		{"misplaced field", `{"int":1,"text":"a"}`, "unknown or misplaced"},
		{"space", `{ "int":1}`, "unknown or misplaced"},
		{"space behind a colon", `{"int": 1}`, "field int"},
		{"leading comma", `{,"int":1}`, "unknown or misplaced"},
		{"trailing comma", `{"int":1,}`, "unknown or misplaced"},
		{"no comma", `{"int":1"int64":1}`, "unknown or misplaced"},
		{"null", `{"int":null}`, "field int"},

		{"zero", `{"int":0}`, "field int"},
		{"negative zero", `{"int":-0}`, "field int"},
		{"leading zero", `{"int":01}`, "field int"},
		{"negative leading zero", `{"int":-01}`, "field int"},
		{"plus", `{"int":+1}`, "field int"},
		{"fraction", `{"int":1.0}`, "unknown or misplaced"},
		{"exponent", `{"int":1e3}`, "unknown or misplaced"},
		{"no digits", `{"int":-}`, "field int"},
		{"over its range", `{"int":9223372036854775808}`, "field int"},
		{"number as text", `{"int":"1"}`, "field int"},
		{"time that is no time", `{"time":-62135596800000000}`, "field time"},
		{"duration over its range", `{"duration":9223372036854775807}`, "field duration"},
		{"flag that is not 1", `{"flag":2}`, "field flag"},
		{"state over its range", `{"state":257}`, "field state"},

		{"empty text", `{"text":""}`, "field text"},
		{"text without end", `{"text":"a`, "field text"},
		{"text that ends in an escape", `{"text":"a\`, "field text"},
		{"text that ends in half an escape", `{"text":"\u00`, "field text"},
		{"number for a text", `{"text":1}`, "field text"},
		{"escaped slash", `{"text":"\/"}`, "field text"},
		{"escaped letter", `{"text":"\u0041"}`, "field text"},
		{"long escape of a newline", `{"text":"\u000a"}`, "field text"},
		{"upper case escape", `{"text":"\u001B"}`, "field text"},
		{"escape beyond a byte", `{"text":"\u20ac"}`, "field text"},
		{"escape that is no number", `{"text":"\u00zz"}`, "field text"},
		{"raw control character", "{\"text\":\"a\x01\"}", "field text"},
		{"raw control character beside an escape", "{\"text\":\"\\n\x01\"}", "field text"},
		{"invalid UTF-8", "{\"text\":\"\xff\"}", "field text"},
		{"invalid UTF-8 beside an escape", "{\"text\":\"\\n\xff\"}", "field text"},

		{"id in capitals", `{"id":"` + strings.ToUpper(id) + `"}`, "field id"},
		{"id in braces", `{"id":"{` + id + `}"}`, "field id"},
		{"id without hyphens", `{"id":"` + strings.ReplaceAll(id, "-", "") + `"}`, "field id"},
		{"zero id", `{"id":"00000000-0000-0000-0000-000000000000"}`, "field id"},
		{"no id", `{"id":"me"}`, "field id"},
		{"unknown reason", `{"reason":"because"}`, "because"},
		{"unknown priority", `{"priority":"urgent"}`, "field priority"},
		{"normal priority", `{"priority":"normal"}`, "field priority"},

		{"list of ids in capitals", `{"ids":["` + id + `","` + strings.ToUpper(id) + `"]}`, "field ids"},
		{"list of ids with one in braces", `{"ids":["{` + id + `}"]}`, "field ids"},
		{"list of ids with one without hyphens", `{"ids":["` + strings.ReplaceAll(id, "-", "") + `"]}`, "field ids"},
		{"list of ids with an empty one", `{"ids":[""]}`, "field ids"},
		{"empty list of ids", `{"ids":[]}`, "field ids"},
		{"ids that are no list", `{"ids":"` + id + `"}`, "field ids"},

		{"short hash", `{"hash":"AAAA"}`, "field hash"},
		{"zero hash", `{"hash":"` + zeros + `"}`, "field hash"},
		{"long hash", `{"hash":"B` + zeros + `"}`, "field hash"},
		{"hash with bits behind its end", `{"hash":"B` + zeros[:41] + `B"}`, "field hash"},
		{"hash of another alphabet", `{"hash":"+` + zeros[:42] + `"}`, "field hash"},

		{"empty list", `{"texts":[]}`, "field texts"},
		{"list without end", `{"texts":["a"`, "field texts"},
		{"list with a trailing comma", `{"texts":["a",]}`, "field texts"},
		{"list of numbers", `{"texts":[1]}`, "field texts"},
		{"text for a list", `{"texts":"a"}`, "field texts"},
		{"numbers with a plus", `{"ints":"+1"}`, "field ints"},
		{"numbers with a leading zero", `{"ints":"1,01"}`, "field ints"},
		{"numbers with a trailing comma", `{"ints":"1,"}`, "field ints"},
		{"numbers with spaces", `{"ints":"1, 2"}`, "field ints"},

		{"object without end", `{"raw":{"a":"}"}`, "unknown or misplaced"},
		{"object that never ends", `{"raw":{"a":"}`, "field raw"},
		{"number for an object", `{"raw":1}`, "field raw"},
		{"nothing for an object", `{"raw":}`, "field raw"},
		{"text for an object", `{"raw":"{}"}`, "field raw"},
	}
	for _, tt := range tests {
		err := events.ReadFields([]byte(tt.text), new(everyField))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s: error %v, want one about %q", tt.name, tt.text, err, tt.want)
		}
	}
}

// Words that stand for the zero are left out, and others are of a closed set.
func TestWordsOfEventsAreStrict(t *testing.T) {
	for _, tt := range []struct {
		event events.Event
		text  string
		want  string // in the error; empty: none
	}{
		{new(events.MessageEnqueued), `{"topic":"t","lock":"l","on_locked":"skip"}`, ""},
		{new(events.MessageEnqueued), `{"topic":"t","lock":"l","on_locked":"wait"}`, "field on_locked"},
		{new(events.MessageEnqueued), `{"topic":"t","lock":"l","on_locked":"steal"}`, "steal"},
		{new(events.WorkerLost), `{"evidence":"silent","orphan_count":"orphanings"}`, ""},
		{new(events.WorkerLost), `{"evidence":"silent","orphan_count":"claims"}`, "field orphan_count"},
		{new(events.WorkerLost), `{"evidence":"silent","orphan_count":"all"}`, "all"},
		{new(events.SweepRefused), `{"reason":"liveness_empty","orphan_count":"orphanings","live":1}`, ""},
		{new(events.SweepRefused), `{"reason":"liveness_empty","orphan_count":"claims"}`, "field orphan_count"},
	} {
		err := events.ReadFields([]byte(tt.text), tt.event)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: error %v, want one about %q", tt.event.Type(), tt.text, err, tt.want)
		}
	}
}

// An error never shows more of the stored bytes than a screen line.
func TestReadFieldsErrorIsBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, text := range []string{long, `{"` + long, `{"text":"` + long, `{"id":"` + long + `"}`, `{"ints":"` + long + `"}`, `{"ids":["` + long + `"]}`,
		`{"reason":"` + long + `"}`, `{"hash":"` + long + `"}`, `{"priority":"` + long + `"}`, `{}` + long} {
		err := events.ReadFields([]byte(text), new(everyField))
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("%.20s…: want an error of at most 300 bytes, got %d bytes", text, len(err.Error()))
		}
	}
}

// Whatever is accepted is written again to the same bytes, so that a checksum or a hash over them stays valid.
func FuzzReadFields(f *testing.F) {
	kinds := visitors()
	for i, v := range kinds {
		f.Add(uint8(i), []byte("{}"))
		for _, s := range corpus.Samples() {
			if reflect.TypeOf(s.Event) == reflect.TypeOf(v) {
				f.Add(uint8(i), events.AppendFields(nil, s.Event))
			}
		}
	}
	full := everyField{
		"a\n\"b", -1, 1, 2, time.UnixMicro(1).UTC(), time.Second, true, events.ID{1}, events.ReasonRetry, events.Low, 3, [32]byte{1},
		[]string{"", "x"}, []int{0, -1}, []events.ID{{}, {1}}, []byte(`{"a":{"b":"}"}}`),
	}
	f.Add(uint8(0), events.AppendFields(nil, &full))
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		v := blank(kinds[int(which)%len(kinds)])
		if err := events.ReadFields(text, v); err != nil {
			return
		}
		if again := events.AppendFields(nil, v); !bytes.Equal(again, text) {
			t.Errorf("%T: accepted\n%s\nand wrote\n%s", v, text, again)
		}
		(&events.Names{}).Fields(v)
	})
}
