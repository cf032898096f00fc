package tidy

import (
	"os"
	"testing"
)

func TestHouseRules(t *testing.T) {
	files, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, hit := range rule.Find(files) {
				t.Errorf("%s: %s: %s\n\tway out: %s", hit.At, rule.Name, hit.Saw, rule.Way)
			}
		})
	}
}
