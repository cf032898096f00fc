package main

import (
	"io"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/spf13/cobra"
)

func newMachines(a *app) *cobra.Command {
	var mermaid, dot bool
	cmd := &cobra.Command{
		Use:   "machines [NAME]",
		Short: "Print what may happen: the transition table of each lifecycle",
		Long:  "The tables are those that the rules look into. A drawing is of one machine.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list := fsm.Lifecycles()
			if len(args) > 0 {
				one, err := machine(args[0])
				if err != nil {
					return err
				}
				list = []*fsm.Lifecycle{one}
			}
			if (mermaid || dot) && len(list) > 1 {
				return usage("a drawing is of one machine: name %s", strings.Join(machineNames(), ", "))
			}
			switch {
			case mermaid:
				return drawMermaid(a.stdout, list[0])
			case dot:
				_, err := io.WriteString(a.stdout, list[0].DOT())
				return err
			}
			return a.printMachines(list)
		},
	}
	printing(a, cmd)
	cmd.ValidArgsFunction = once(fixed(machineNames()...))
	cmd.Flags().BoolVar(&mermaid, "mermaid", false, "as a Mermaid state diagram")
	cmd.Flags().BoolVar(&dot, "dot", false, "as a graph for Graphviz")
	cmd.MarkFlagsMutuallyExclusive("mermaid", "dot", "output", "json")
	return cmd
}

func machineNames() []string {
	var names []string
	for _, l := range fsm.Lifecycles() {
		names = append(names, l.Kind().String())
	}
	return names
}

func machine(name string) (*fsm.Lifecycle, error) {
	for _, l := range fsm.Lifecycles() {
		if l.Kind().String() == name {
			return l, nil
		}
	}
	return nil, usage("machine %q: want %s", name, strings.Join(machineNames(), ", "))
}

// jsonMachine is a lifecycle as JSON has it.
type jsonMachine struct {
	Machine string     `json:"machine"`
	Edges   []jsonEdge `json:"edges"`
}

// jsonEdge is what may happen in a state as JSON has it.
type jsonEdge struct {
	From  *string `json:"from"` // null is what is not there yet
	Event string  `json:"event"`
	To    *string `json:"to"` // null is what is there no more
}

func (a *app) machinesJSON(list []*fsm.Lifecycle) error {
	d := document[jsonMachine]{Schema: "foundling.machines/v1", apart: true}
	for _, l := range list {
		j := jsonMachine{Machine: l.Kind().String(), Edges: []jsonEdge{}}
		for _, e := range l.Edges() {
			j.Edges = append(j.Edges, jsonEdge{stateOrNull(e.From), e.Event.String(), stateOrNull(e.To)})
		}
		d.Items = append(d.Items, j)
	}
	return printJSON(a, d)
}

// stateOrNull is a state as JSON has it; null where there is none.
func stateOrNull(s events.State) *string {
	if s == events.Absent {
		return nil
	}
	return orNull(s.String())
}

func (a *app) printMachines(list []*fsm.Lifecycle) error {
	if !a.forPeople() {
		return a.machinesJSON(list)
	}
	var parts []string
	for _, l := range list {
		t := newTable("FROM", "EVENT", "TO")
		for _, e := range l.Edges() {
			t.add(stateWord(e.From), e.Event.String(), stateWord(e.To))
		}
		parts = append(parts, l.Kind().String()+"\n"+t.text())
	}
	_, err := io.WriteString(a.stdout, strings.Join(parts, "\n"))
	return err
}

// stateWord is a state for people; what is not there yet has none.
func stateWord(s events.State) string {
	if s == events.Absent {
		return unknown
	}
	return s.String()
}

func drawMermaid(w io.Writer, l *fsm.Lifecycle) error {
	text, err := l.Mermaid()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}
