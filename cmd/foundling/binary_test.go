package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// buildEnv names the folder where the command is built for the tests.
const buildEnv = "FOUNDLING_TEST_BUILD"

// running runs the tests, with a folder for what they build.
type running struct{ *testing.M }

func (m running) Run() int {
	dir, err := os.MkdirTemp("", "foundling-built-")
	if err == nil {
		err = os.Setenv(buildEnv, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	return m.M.Run()
}

// built is the command, built once for all tests that need it.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.Getenv(buildEnv), "foundling")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// binaryPath is the built command: the one that ./test made, or one made now.
func binaryPath() (string, error) {
	if path := os.Getenv("FOUNDLING_BINARY"); path != "" {
		return path, nil
	}
	return built()
}

func binary(t *testing.T) string {
	t.Helper()
	path, err := binaryPath()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
