// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inlineCode = regexp.MustCompile("`([^`\n]+)`")
	longFlag   = regexp.MustCompile(`(?:^|[\s(\[])--([a-z][a-z0-9-]*)`)
	flagOfHelp = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9-]+)`)
	ourCommand = regexp.MustCompile(`^(?:bin/|kubectl )?sallyport ((?:[a-z]+ ?)+)`)
)

// prose holds what stands in code within a sentence to what the programs say of themselves.
func (w *world) prose(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	sallyport, kubectl := w.real("sallyport"), filepath.Join(assets, "kubectl")

	known := map[string]bool{}
	helps := map[string]string{} // of sallyport, by command
	note := func(help string) {
		for _, m := range flagOfHelp.FindAllStringSubmatch(help, -1) {
			known[m[1]] = true
		}
	}
	var walk func(command string)
	walk = func(command string) {
		help := output(t, sallyport, append(strings.Fields(command), "--help")...)
		helps[command] = help
		note(help)
		_, list, _ := strings.Cut(help, "\nCommands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(list, -1) {
			if m[1] != "help" && m[1] != "completion" {
				walk(strings.TrimSpace(command + " " + m[1]))
			}
		}
	}
	walk("")
	if len(helps) < 15 {
		t.Fatalf("only the commands %v are found", helps)
	}
	note(output(t, w.real("cloud-controller-manager"), "--help"))
	for _, command := range []string{"serve", "manifests"} {
		note(output(t, w.real("crontab"), command, "--help"))
	}
	note(output(t, filepath.Join(assets, "kube-apiserver"), "--help"))
	for _, command := range []string{"apply", "create", "debug", "delete", "get"} {
		note(output(t, kubectl, command, "--help"))
	}
	known["set"], known["privileged"] = true, true // of helm, and of container daemons

	commands, flags := 0, 0
	for _, guide := range guides(t) {
		for _, m := range inlineCode.FindAllStringSubmatch(withoutCode(read(t, guide)), -1) {
			for _, flag := range longFlag.FindAllStringSubmatch(m[1], -1) {
				flags++
				if !known[flag[1]] {
					t.Errorf("%s names the flag --%s, which no program has", guide, flag[1])
				}
			}
			ours := ourCommand.FindStringSubmatch(m[1])
			if ours == nil {
				continue
			}
			commands++
			// The longest part that is a command; what follows are arguments.
			words := strings.Fields(ours[1])
			n := len(words)
			for ; n > 0 && helps[strings.Join(words[:n], " ")] == ""; n-- {
			}
			help := helps[strings.Join(words[:n], " ")]
			if n == 0 || n < len(words) && strings.Contains(help, "\nCommands:\n") {
				t.Errorf("%s names %q, and there is no such command", guide, m[1])
				continue
			}
			for _, flag := range longFlag.FindAllStringSubmatch(m[1], -1) {
				if !strings.Contains(help, "--"+flag[1]+" ") && flag[1] != "help" && flag[1] != "version" {
					t.Errorf("%s names %q, and that command has no flag --%s", guide, m[1], flag[1])
				}
			}
		}
	}
	if commands < 20 || flags < 50 {
		t.Errorf("only %d commands and %d flags are found", commands, flags)
	}
}
