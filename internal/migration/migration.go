// Package migration reads the numbered steps that goose runs, for scripts that people run by hand.
package migration

import (
	"fmt"
	"io/fs"
	"strings"
)

// Step is the SQL of the one step to a version in the folder "migrations", without goose's marks and without the way back.
func Step(files fs.FS, version int) (string, error) {
	names, err := fs.Glob(files, fmt.Sprintf("migrations/%05d_*.sql", version))
	if err != nil {
		return "", err
	}
	if len(names) != 1 {
		return "", fmt.Errorf("%d migrations to version %d, want 1", len(names), version)
	}
	text, err := fs.ReadFile(files, names[0])
	if err != nil {
		return "", err
	}
	up, _, _ := strings.Cut(string(text), "-- +goose Down")
	var b strings.Builder
	for line := range strings.Lines(up) {
		if !strings.HasPrefix(line, "-- +goose ") {
			b.WriteString(line)
		}
	}
	return b.String(), nil
}
