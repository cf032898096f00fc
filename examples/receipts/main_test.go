package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

func TestTheFirstProgramRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // it runs until it is stopped
	defer cancel()
	if err := run(ctx, filepath.Join(t.TempDir(), "app.db")); err != nil {
		t.Fatal(err)
	}
}
