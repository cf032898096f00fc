package postgres

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/foundling-go/foundling/store"
)

// askable refuses a call that names what the server cannot even compare: it would fail all calls that share the transaction.
func askable(need *store.Need) error {
	var errs []error
	check := func(what string, names ...string) {
		for _, name := range names {
			if strings.IndexByte(name, 0) >= 0 || !utf8.ValidString(name) {
				errs = append(errs, fmt.Errorf("%s %q: want UTF-8 without a zero byte", what, name))
			}
		}
	}
	for _, entity := range need.Held {
		check(entity.Kind.String(), entity.Name)
	}
	for i := range need.Known {
		check(need.Known[i].Entity.Kind.String(), need.Known[i].Entity.Name)
		check("topic", need.Known[i].Topic)
	}
	for _, page := range need.Claim {
		check("topic", page.Topic)
	}
	for _, page := range need.Uncounted {
		check("topic", page.Topic)
	}
	for _, key := range need.Keys {
		check("topic", key.Topic)
		check("key", key.Name)
	}
	check("lock", need.Locks...)
	for _, key := range need.Permits {
		check("lock", key.Lock)
	}
	for _, page := range need.Holders {
		check("lock", page.Lock)
	}
	return errors.Join(errs...)
}
