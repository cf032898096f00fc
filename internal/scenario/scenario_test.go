package scenario_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/foundling-go/foundling/internal/scenario"
)

const folder = "../../testdata/scenarios"

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("scenarios in %s: %d, %v", folder, len(files), err)
	}
	for _, file := range files {
		for _, engine := range scenario.Engines() {
			t.Run(filepath.Base(file)+"/"+engine.Name, func(t *testing.T) { tell(t, engine, file) })
		}
	}
}

// tell runs a file on a new store.
func tell(t *testing.T, engine scenario.Engine, file string) {
	w, err := scenario.New(t.Context(), engine, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		line := strings.Split(d.FullCmd(), "\n")[0]
		result, err := w.Do(t.Context(), line, d.Input)
		if err != nil {
			t.Errorf("%s: %s: %v", d.Pos, line, err)
		}
		return result.Text
	})
	if err := w.Check(t.Context()); err != nil {
		t.Errorf("at the end: %v", err)
	}
}
