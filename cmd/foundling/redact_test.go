package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/foundling-go/foundling"
	"pgregory.net/rapid"
)

func TestWhatIsSecretIsHidden(t *testing.T) {
	r := newRedactor([]string{"e-mail"}, "key")
	x, n := r.stand([]byte("x")), r.stand([]byte("1"))
	for _, test := range []struct{ content, want string }{
		{`{"a":1,"Api-Key":"x","b":{"PASS_WORD":"x","list":[{"sessionId":1}]}}`,
			`{"Api-Key":"` + x + `","a":1,"b":{"PASS_WORD":"` + x + `","list":[{"sessionId":"` + n + `"}]}}`},
		{`{"EMail":"x","to":null,"secret":null}`, `{"EMail":"` + x + `","secret":null,"to":null}`},
		{`{"note":"password=x, and more"}`, `{"note":"password=` + x + `, and more"}`},
		{`[{"token":"x"},"x"]`, `[{"token":"` + x + `"},"` + x + `"]`},
		{`"x"`, `"` + x + `"`},
		{`no json`, r.stand([]byte(`no json`))},
		{`{"a":1} {"password":"x"}`, r.stand([]byte(`{"a":1} {"password":"x"}`))},
		{`{"big":12345678901234567890}`, `{"big":12345678901234567890}`},
		{`{}`, `{}`},
	} {
		if got := string(r.content([]byte(test.content))); got != test.want {
			t.Errorf("%s: %s, want %s", test.content, got, test.want)
		}
	}
	if got := newRedactor([]string{redactAll}, "key").content([]byte(`{"a":1}`)); !strings.HasPrefix(string(got), "redacted:") {
		t.Errorf("all: %s", got)
	}
	var none *redactor
	if got := none.content([]byte(`{"password":"x"}`)); string(got) != `{"password":"x"}` {
		t.Errorf("nobody asked: %s", got)
	}
}

func TestSecretsInLinesAreHidden(t *testing.T) {
	r := newRedactor(nil, "key")
	x := r.stand([]byte("s3cret"))
	for _, test := range []struct{ line, want string }{
		{"dial: password=s3cret host=db", "dial: password=" + x + " host=db"},
		{"Authorization: Bearer s3cret", "Authorization: Bearer " + x},
		{`{"error":"api_key: 's3cret'"}`, `{"error":"api_key: '` + x + `'"}`},
		{`{"error":"{\"db_password\":\"s3cret\"}"}`, `{"error":"{\"db_password\":\"` + x + `\"}"}`},
		{"running→completed token=2 attempt=1", "running→completed token=2 attempt=1"},
		{`{"token":"17","lock_token":null}`, `{"token":"17","lock_token":null}`},
		{"open postgres://ann:s3cret@db/x", "open postgres://ann:…@db/x"},
	} {
		if got := string(r.line([]byte(test.line))); got != test.want {
			t.Errorf("%s: %s, want %s", test.line, got, test.want)
		}
	}
	var none *redactor
	if got := string(none.line([]byte("password=x amqp://u:p@h:1/v https://h/p@q"))); got != "password=x amqp://u:…@h:1/v https://h/p@q" {
		t.Errorf("nobody asked: %s", got)
	}
}

// Equal values stay equal, others do not, another key makes others of them, and what is hidden is nowhere in what is shown.
func TestHiddenValuesCanBeTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z]{12,20}`).Draw(t, "secret")
		other := rapid.StringMatching(`[A-Z]{12,20}`).Draw(t, "other")
		payload, err := json.Marshal(map[string]any{"password": secret, "deep": []any{map[string]any{"token": secret, "cookie": other}}})
		if err != nil {
			t.Fatal(err)
		}
		r := newRedactor(nil, "key")
		shown := string(r.content(payload))
		if strings.Contains(shown, secret) || strings.Contains(shown, other) {
			t.Errorf("%s", shown)
		}
		if strings.Count(shown, r.stand([]byte(secret))) != 2 || strings.Count(shown, r.stand([]byte(other))) != 1 {
			t.Errorf("%s", shown)
		}
		if newRedactor(nil, "").stand([]byte(secret)) == r.stand([]byte(secret)) {
			t.Error("without a key it is as with one")
		}
	})
}

// Hiding everything ended the listing of events in the midst of its object, and what was hidden called itself text.
func TestHidingAllGivesWholeObjects(t *testing.T) {
	o := newOffice(t)
	for _, line := range []string{"events", "messages --state all", "messages @good", "trace @good"} {
		if code := o.run(line + " --redact=all --json"); code != 0 {
			t.Errorf("%s: exit code %d, %s", line, code, &o.err)
		}
		if err := validate(o.out.Bytes()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	o.run("events --redact=all --json")
	if text := o.out.String(); !strings.Contains(text, `"params":"redacted:`) {
		t.Errorf("no parameters are hidden in %s", text)
	}
	o.run("messages @good --redact=all --json")
	if text := o.out.String(); !strings.Contains(text, `"encoding":"redacted","value":"redacted:`) {
		t.Errorf("no payload is hidden in %s", text)
	}
}

// JSON whose texts are no UTF-8 made the whole output no JSON.
func TestAPayloadThatIsNoTextIsBase64(t *testing.T) {
	payload := []byte("{\"name\":\"a\xff\"}")
	c := foundling.Content{Bytes: payload, Size: len(payload)}
	j := (&app{}).jsonContent(c)
	if want := `"` + base64.StdEncoding.EncodeToString(payload) + `"`; *j.Encoding != "base64" || string(j.Value) != want {
		t.Errorf("%s: %s", *j.Encoding, j.Value)
	}
	j = (&app{redactor: newRedactor(nil, "key")}).jsonContent(c)
	if !json.Valid(j.Value) || !utf8.Valid(j.Value) {
		t.Errorf("redacted: %s: %q", *j.Encoding, j.Value)
	}
	var out bytes.Buffer
	s := newScreen(&out)
	s.escape, s.broken = escapeJSON, brokenJSON
	if _, err := s.Write([]byte("{\"a\":\"\xff\x1b\"}\n")); err != nil || !json.Valid(out.Bytes()) || !strings.Contains(out.String(), `\ufffd\u001b`) {
		t.Errorf("%v: %s", err, &out)
	}
}
