package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store"
)

// actor is how the log names who gave a command: the user, the host and what they used.
func (a *app) actor(command string) string {
	user := a.env("USER")
	if user == "" {
		user = a.env("LOGNAME")
	}
	if user == "" {
		user = fmt.Sprintf("uid-%d", os.Getuid())
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	const most = 60 // each; together they stay below the bound of an actor
	return fmt.Sprintf("%s@%s foundling %s", cut(user, most), cut(host, most), command)
}

// client is a client of a store for a command.
func (a *app) client(s store.Store, command string) (*foundling.Client, error) {
	return foundling.NewClient(s, foundling.ClientOptions{Actor: a.actor(command), Logger: a.logger()})
}

// cut is at most so many bytes of s.
func cut(s string, most int) string {
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
