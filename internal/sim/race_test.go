package sim

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
)

// raced reports whether this program was built with the race detector, which makes it six times slower.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// again builds this package's tests without the race detector and runs some of them. The others run with it.
func again(t *testing.T, run string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sim.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-race=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "-test.run", run, "-test.v", "-test.timeout", "29m").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
