package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"
)

// schemas are the JSON Schemas of everything that commands print as JSON, each under its name and version.
//
//go:embed schemas/*.json
var schemas embed.FS

func newSchema(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of what a command prints as JSON",
		Long: "NAME is what the object has as its schema, as in foundling.topics/v1, or a part of that, as in topics. error is what standard error\n" +
			"has where a command fails. Without NAME it lists them.\n" +
			"Within a version fields are only added. What is taken away or comes to mean something else makes a new version.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			names := schemaNames()
			if len(args) == 0 {
				return a.schemaList(names)
			}
			for _, name := range names {
				short, _, _ := strings.Cut(strings.TrimPrefix(name, "foundling."), "/")
				if args[0] != name && args[0] != short {
					continue
				}
				text, err := schemaOf(name)
				if err != nil {
					return err
				}
				_, err = a.stdout.Write(text)
				return err
			}
			return usage("schema %q: want one of %s", args[0], strings.Join(names, ", "))
		},
	}
	cmd.ValidArgsFunction = once(fixed(schemaNames()...))
	return cmd
}

func (a *app) schemaList(names []string) error {
	_, err := io.WriteString(a.stdout, strings.Join(names, "\n")+"\n")
	return err
}

// schemaNames are the names of the schemas, as in foundling.topics/v1.
func schemaNames() []string {
	files, err := fs.Glob(schemas, "schemas/*.json")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	var names []string
	for _, file := range files {
		name, version, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".json"), ".")
		names = append(names, "foundling."+name+"/"+version)
	}
	return names
}

// schemaOf is the schema of a name.
func schemaOf(name string) ([]byte, error) {
	short, version, ok := strings.Cut(strings.TrimPrefix(name, "foundling."), "/")
	if !ok {
		return nil, fmt.Errorf("schema %q has no version", name)
	}
	return schemas.ReadFile("schemas/" + short + "." + version + ".json")
}
