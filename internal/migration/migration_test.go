package migration

import (
	"testing"
	"testing/fstest"
)

func TestStepIsTheWayUpWithoutMarks(t *testing.T) {
	files := fstest.MapFS{
		"migrations/00001_store.sql": {Data: []byte("-- +goose Up\n-- kept\nCREATE TABLE a ();\n-- +goose StatementBegin\nSELECT 1;\n-- +goose StatementEnd\n-- +goose Down\nDROP TABLE a;\n")},
		"migrations/00002_one.sql":   {},
		"migrations/00002_two.sql":   {},
	}
	if got, err := Step(files, 1); err != nil || got != "-- kept\nCREATE TABLE a ();\nSELECT 1;\n" {
		t.Errorf("step 1 is %q, error %v", got, err)
	}
	for version, want := range map[int]string{2: "2 migrations to version 2, want 1", 3: "0 migrations to version 3, want 1"} {
		if got, err := Step(files, version); err == nil || err.Error() != want {
			t.Errorf("step %d is %q, error %v, want %q", version, got, err, want)
		}
	}
}
