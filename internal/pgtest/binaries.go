package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// oldest is the oldest major version that is supported.
const oldest = 14

// ErrNone says that there is neither a DATABASE_URL nor a server's binaries.
var ErrNone = errors.New("there is no Postgres: ./test --install brings it, DATABASE_URL names one, FOUNDLING_ENGINES=memory,sqlite leaves it out")

// errNoBinaries says that this machine cannot start a server.
var errNoBinaries = errors.New("no server binaries")

// binaries are a server's programs.
type binaries struct {
	dir   string
	major int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// usual are the folders in which packages for servers put them, for several versions at once.
var usual = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin", "/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
}

// findBinaries takes those that FOUNDLING_POSTGRES_BIN names, else the first in PATH, else the newest in the usual folders.
func findBinaries() (binaries, error) {
	if dir := os.Getenv("FOUNDLING_POSTGRES_BIN"); dir != "" {
		b, err := binariesIn(dir)
		if err != nil {
			return binaries{}, fmt.Errorf("FOUNDLING_POSTGRES_BIN: %w", err)
		}
		return b, nil
	}
	for _, program := range []string{"postgres", "initdb"} {
		if path, err := exec.LookPath(program); err == nil {
			if b, err := binariesIn(folder(path)); err == nil {
				return b, nil
			}
		}
	}
	return newestBinaries()
}

// folder is where a program really is: what is in PATH may be a link.
func folder(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Dir(path)
}

func newestBinaries() (binaries, error) {
	var dirs []string
	for _, pattern := range usual {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		dirs = append(dirs, found...)
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, string(regexp.MustCompile(`\s+$`).ReplaceAll(out, nil)))
	}
	var all []binaries
	for _, dir := range dirs {
		if b, err := binariesIn(dir); err == nil {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		return binaries{}, errNoBinaries
	}
	return slices.MaxFunc(all, func(a, b binaries) int { return a.major - b.major }), nil
}

var versionLine = regexp.MustCompile(`^postgres \(.*?\) (\d+)`)

// binariesIn is an error where the folder lacks a program or its version is too old.
func binariesIn(dir string) (binaries, error) {
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return binaries{}, err
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, err
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return binaries{}, fmt.Errorf("%s: it calls itself %q", dir, out)
	}
	major, err := strconv.Atoi(string(m[1]))
	if err != nil || major < oldest {
		return binaries{}, fmt.Errorf("%s: version %s is older than %d", dir, m[1], oldest)
	}
	return binaries{dir: dir, major: major}, nil
}
