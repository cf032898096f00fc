package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// redactEnv is the key with which what is hidden is told apart. With the same key, equal values stay equal from one output to the next;
// without one they do so within one output alone.
const redactEnv = "FOUNDLING_REDACT_KEY"

// redactAll as a key hides payloads, results and parameters whole.
const redactAll = "all"

// secretKeys are the keys whose values are hidden wherever they occur in a payload, a result or a command's parameters: those that contain one
// of these words, whatever case they are in and whatever stands between their letters.
func secretKeys() []string {
	return []string{
		"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "authorization", "credential", "cookie",
		"session", "signature", "cardnumber", "cvv", "iban", "ssn",
	}
}

// redactor hides what is secret. A nil one hides nothing but what is hidden always.
type redactor struct {
	keys []string
	all  bool
	mac  []byte
}

// newRedactor is what --redact asks for: no words, or keys besides those that are known.
func newRedactor(words []string, key string) *redactor {
	r := &redactor{keys: secretKeys(), mac: []byte(key)}
	for _, word := range words {
		if word = bare(word); word == redactAll {
			r.all = true
		} else if word != "" {
			r.keys = append(r.keys, word)
		}
	}
	if key == "" {
		r.mac = []byte(rand.Text())
	}
	return r
}

// bare is a key as rules compare it.
func bare(key string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(key))
}

func (r *redactor) secret(key string) bool {
	key = bare(key)
	return slices.ContainsFunc(r.keys, func(word string) bool { return strings.Contains(key, word) })
}

// stand is what stands for a hidden value: the same for equal ones, and nothing can be learnt from it.
func (r *redactor) stand(value []byte) string {
	mac := hmac.New(sha256.New, r.mac)
	mac.Write(value)
	return "redacted:" + hex.EncodeToString(mac.Sum(nil)[:5])
}

// content is a payload, a result or the parameters of a command as it may be shown. What has no keys to judge it by is hidden whole.
func (r *redactor) content(b []byte) []byte {
	if r == nil || b == nil {
		return b
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); r.all || err != nil || d.More() {
		return []byte(r.stand(b))
	}
	hidden, err := json.Marshal(r.judged(v))
	if err != nil {
		return []byte(r.stand(b))
	}
	return hidden
}

// judged is a value of JSON that has no key of its own.
func (r *redactor) judged(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return r.inside(v)
	case []any:
		for i := range v {
			v[i] = r.judged(v[i])
		}
		return v
	}
	return r.hidden(v)
}

// inside hides what is secret in a value of JSON.
func (r *redactor) inside(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(v)) {
			if r.secret(key) {
				v[key] = r.hidden(v[key])
			} else {
				v[key] = r.inside(v[key])
			}
		}
	case []any:
		for i := range v {
			v[i] = r.inside(v[i])
		}
	case string:
		return string(r.line([]byte(v)))
	}
	return v
}

// hidden is what stands for a value of JSON. That there is none is no secret.
func (r *redactor) hidden(v any) any {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if text, ok := v.(string); ok {
		b = []byte(text) // as it would be found in a text
	}
	if err != nil {
		return "redacted"
	}
	return r.stand(b)
}

// assigned finds what looks like a secret with its name in a text: name=value, name: value, or an authorization.
var assigned = regexp.MustCompile(`(?i)([\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|` +
	`credential|cookie)[\w.-]*\\?["']?\s*[=:]\s*(?:\\?["'])?(?:(?:bearer|basic)\s+)?)([^\s"'\\,;&}\])]+)`)

// plainly is what is no secret although it stands there: the token of a claim or a lock, nothing, and what is hidden already.
var plainly = regexp.MustCompile(`^([0-9]+|null|redacted:.*)$`)

// address finds the secret of an address, as in scheme://user:secret@host.
var address = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s:@/"']*):([^\s@/"']+)@`)

// hideAddresses hides the secrets of addresses, which are never printed.
func hideAddresses(line []byte) []byte {
	if !bytes.Contains(line, []byte("://")) {
		return line
	}
	return address.ReplaceAll(line, []byte("$1:…@"))
}

// line is a line of output in which what looks like a secret is hidden.
func (r *redactor) line(line []byte) []byte {
	line = hideAddresses(line)
	if r == nil {
		return line
	}
	return assigned.ReplaceAllFunc(line, func(found []byte) []byte {
		parts := assigned.FindSubmatch(found)
		if plainly.Match(parts[2]) {
			return found
		}
		return append(bytes.Clone(parts[1]), r.stand(parts[2])...)
	})
}
