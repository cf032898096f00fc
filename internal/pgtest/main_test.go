package pgtest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asChild is the environment variable that makes the test binary play another process, whose role it names.
const asChild = "FOUNDLING_PGTEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(asChild); role != "" {
		os.Exit(playChild(role))
	}
	goleak.VerifyTestMain(m)
}
