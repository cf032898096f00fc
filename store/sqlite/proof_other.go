//go:build !linux && !darwin

package sqlite

import (
	"fmt"
	"runtime"

	"github.com/foundling-go/foundling/store"
)

// local knows of no way to tell network file systems from others here, and a wrong proof would give away work that is being done.
func local(string) error {
	return fmt.Errorf("%w: not offered on %s", store.ErrNoProof, runtime.GOOS)
}
