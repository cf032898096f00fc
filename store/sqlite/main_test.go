package sqlite_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asChild is the environment variable that makes the test binary play another process of a store.
const asChild = "FOUNDLING_SQLITE_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(asChild); role != "" {
		os.Exit(playChild(role, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}
