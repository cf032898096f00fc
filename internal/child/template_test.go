package child

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplate(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name      string
		args      []string
		in        Input
		payload   string
		want      []string
		wantStdin string
	}{
		{name: "appended", args: []string{"-a"}, payload: "x", want: []string{"-a", "x"}},
		{name: "appended alone", payload: "x", want: []string{"x"}},
		{name: "replaced everywhere", args: []string{"{}", "a{}b{}", "c"}, payload: "x", want: []string{"x", "axbx", "c"}},
		{name: "replaced once only", args: []string{"{}"}, payload: "{}{}", want: []string{"{}{}"}},
		{name: "one argument whatever it holds", args: []string{"-c"}, payload: "a b; rm \"$x\" \xff\n", want: []string{"-c", "a b; rm \"$x\" \xff\n"}},
		{name: "empty payload", args: []string{"-a"}, payload: "", want: []string{"-a", ""}},
		{name: "stdin", args: []string{"{}"}, in: Stdin, payload: "x\x00", want: []string{"{}"}, wantStdin: "x\x00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			template, err := NewTemplate(append([]string{self}, tt.args...), tt.in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Fill([]byte(tt.payload))
			if err != nil {
				t.Fatal(err)
			}
			want := Spec{Path: self, Args: append([]string{self}, tt.want...)}
			if tt.wantStdin != "" {
				want.Stdin = []byte(tt.wantStdin)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTemplateKeepsItsArguments(t *testing.T) {
	argv := []string{os.Args[0], "{}"}
	template, err := NewTemplate(argv, Argument)
	if err != nil {
		t.Fatal(err)
	}
	argv[1] = "changed"
	for _, payload := range []string{"x", "y"} {
		spec, err := template.Fill([]byte(payload))
		if err != nil || spec.Args[1] != payload {
			t.Errorf("got %q, %v, want %s", spec.Args, err, payload)
		}
	}
}

func TestTemplateTakesNoNUL(t *testing.T) {
	template, err := NewTemplate([]string{os.Args[0]}, Argument)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := template.Fill([]byte("a\x00b")); err != ErrNUL {
		t.Errorf("got %v, want ErrNUL", err)
	}
}

func TestTemplateNamesWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		argv []string
		in   Input
		want string
	}{
		{nil, Argument, "no command given"},
		{[]string{""}, Argument, "no command given"},
		{[]string{"a{}b"}, Argument, `command "a{}b": only its arguments may hold {}`},
		{[]string{"nosuchcommand", "{}"}, Argument, `command "nosuchcommand": executable file not found in`},
		{[]string{file}, Stdin, `command "` + file + `": `},
		{[]string{os.Args[0]}, 7, "input 7: want Argument (0) or Stdin (1)"},
	} {
		_, err := NewTemplate(tt.argv, tt.in)
		if err == nil || !strings.HasPrefix(strings.ReplaceAll(err.Error(), `\\`, `\`), tt.want) {
			t.Errorf("%q: got %v, want %s", tt.argv, err, tt.want)
		}
	}
	if _, err := NewTemplate([]string{"nosuchcommand"}, Argument); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v, want exec.ErrNotFound in it", err)
	}
}
