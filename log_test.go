package foundling_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/memory"
)

// The keys of log records are written down once, in log.go.
func TestEveryLogKeyIsOneOfTheTable(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			skip, ok := keysBehind(call)
			if !ok {
				return true
			}
			calls++
			for _, arg := range call.Args[skip:] {
				if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					t.Errorf("%s: %s is no key of log.go", fset.Position(lit.Pos()), lit.Value)
				}
			}
			return true
		})
	}
	if calls < 20 {
		t.Errorf("found %d calls, fewer than there were when this was written", calls)
	}
}

// keysBehind is how many arguments of a call come before its keys and values, if it is one that has such.
func keysBehind(call *ast.CallExpr) (int, bool) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return 0, false
	}
	switch method.Sel.Name {
	case "InfoContext", "WarnContext", "ErrorContext", "DebugContext":
		return 2, true
	case "Info", "Warn", "Error", "Debug":
		return 1, len(call.Args) > 1
	case "attrs", "With":
		return 0, true
	}
	return 0, false
}

// records is a log as its lines.
type records struct {
	mu   sync.Mutex
	list []map[string]any
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, err
	}
	r.list = append(r.list, fields)
	return len(line), nil
}

func TestARecordAboutAClaimNamesItAsItsEventsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log records
		c, err := foundling.NewClient(memory.New(memory.Options{}), foundling.ClientOptions{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		stop := handling(t, c, "mail", func(context.Context, foundling.Message[string]) error { return errors.New("boom") })
		id := enqueue(t, c, "mail", "x", foundling.EnqueueOptions{Lock: "user:1", MaxAttempts: 1})
		time.Sleep(time.Minute)
		stop()
		for _, fields := range log.list {
			if fields["msg"] != "handler failed" {
				continue
			}
			if fields["message"] != id.String() || fields["topic"] != "mail" || fields["attempt"] != 1.0 || fields["token"] != 2.0 ||
				fields["lock"] != "user:1" || fields["error"] != "boom" || fields["worker"] == nil {
				t.Errorf("%v", fields)
			}
			return
		}
		t.Errorf("no record of it in %v", log.list)
	})
}
