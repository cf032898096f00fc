package main

import (
	"encoding/json"
	"strings"
	"testing"

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
