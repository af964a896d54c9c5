// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inlineCode = regexp.MustCompile("`([^`\n]+)`")
	longFlag   = regexp.MustCompile(`(?:^|[\s(\[])--([a-z][a-z0-9-]*)`)
	flagOfHelp = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9-]+)`)
	// A command in a sentence, tested as one in a block that is checked; brackets are for
	// what may be left out.
	inlineCommand = regexp.MustCompile(`^(?:bin/)?(?:sallyport|kubectl|make|helm) [a-z]`)
	group         = regexp.MustCompile(`^(?:kubectl )?sallyport( certificates| config| webhooks)?$|^kubectl sallyport$`)
)

// prose holds what stands in code within a sentence to what the programs say of themselves.
func (w *world) prose(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	sallyport, kubectl := w.real("sallyport"), filepath.Join(assets, "kubectl")

	known := map[string]bool{}
	listed := 0
	note := func(help string) {
		for _, m := range flagOfHelp.FindAllStringSubmatch(help, -1) {
			known[m[1]] = true
		}
	}
	var walk func(command string)
	walk = func(command string) {
		help := output(t, sallyport, append(strings.Fields(command), "--help")...)
		listed++
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
	if listed < 15 {
		t.Fatalf("only %d commands are found", listed)
	}
	note(output(t, w.real("cloud-controller-manager"), "--help"))
	for _, command := range []string{"serve", "manifests"} {
		note(output(t, w.real("crontab"), command, "--help"))
	}
	note(output(t, filepath.Join(assets, "kube-apiserver"), "--help"))
	for _, command := range []string{"apply", "create", "debug", "delete", "get"} {
		note(output(t, kubectl, command, "--help"))
	}
	note(output(t, w.real("helm"), "upgrade", "--help"))
	known["privileged"] = true // of container daemons

	var commands []string
	flags := 0
	for _, guide := range guides(t) {
		for _, m := range inlineCode.FindAllStringSubmatch(withoutCode(read(t, guide)), -1) {
			for _, flag := range longFlag.FindAllStringSubmatch(m[1], -1) {
				flags++
				if !known[flag[1]] {
					t.Errorf("%s names the flag --%s, which no program has", guide, flag[1])
				}
			}
			if inlineCommand.MatchString(m[1]) && !group.MatchString(m[1]) && !slices.Contains(commands, m[1]) {
				commands = append(commands, m[1])
			}
		}
	}
	plain := strings.NewReplacer("[", "", "]", "")
	for _, mistake := range w.check(t, plain.Replace(strings.Join(commands, "\n")), w.programs+"-others") {
		t.Errorf("in a sentence of a document: %s", mistake)
	}
	if len(commands) < 40 || flags < 50 {
		t.Errorf("only %d commands and %d flags are found", len(commands), flags)
	}
}
