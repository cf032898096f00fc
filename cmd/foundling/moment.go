package main

import (
	"context"
	"strings"
	"time"

	"github.com/foundling-go/foundling/store"
)

// moment reads a time as flags give it: RFC 3339, or how long ago by the store's clock, as in -15m. An empty word is no time.
func moment(ctx context.Context, s store.Store, flag, word string) (time.Time, error) {
	if word == "" {
		return time.Time{}, nil
	}
	if strings.HasPrefix(word, "-") {
		ago, err := time.ParseDuration(word[1:])
		if err == nil && ago >= 0 {
			now, err := s.Now(ctx)
			return now.Add(-ago), err
		}
	}
	t, err := time.Parse(time.RFC3339Nano, word)
	if err != nil {
		return time.Time{}, usage("--%s %q: want a time as in 2026-11-29T06:26:31Z, or how long ago as in -15m", flag, word)
	}
	return t, nil
}
