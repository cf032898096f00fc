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
	// Connections that wait to be lent again may have a reader: pgx leaves it there after a write that was slow.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead"))
}
