package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		RunE: func(*cobra.Command, []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			v := versionOf(info)
			if a.forPeople() {
				_, err := fmt.Fprintf(a.stdout, "foundling %s\n", v.text())
				return err
			}
			return printJSON(a, document[jsonVersion]{Schema: "foundling.version/v1", apart: true, Items: []jsonVersion{v}})
		},
	}
	printing(a, cmd)
	return cmd
}

// jsonVersion is what is known of a build.
type jsonVersion struct {
	Version  string  `json:"version"`
	Revision *string `json:"revision"` // null where it was not built from a commit
	Modified bool    `json:"modified"` // with changes that are in no commit
	Go       string  `json:"go"`
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
}

func versionOf(info *debug.BuildInfo) jsonVersion {
	v := jsonVersion{Version: info.Main.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	v.Revision, v.Modified = orNull(settings["vcs.revision"]), settings["vcs.modified"] == "true"
	return v
}

// text is a version in one line.
func (v jsonVersion) text() string {
	text := v.Version
	if v.Revision != nil {
		text += " · " + *v.Revision
		if v.Modified {
			text += " with changes"
		}
	}
	return fmt.Sprintf("%s · %s %s/%s", text, v.Go, v.OS, v.Arch)
}
