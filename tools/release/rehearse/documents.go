// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// blocks are the commands in a document that the rehearsal runs: those below the mark.
func (r *rehearsal) blocks(document, mark string, least int) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(r.top, document))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, block := range strings.Split(string(text), mark+"\n```sh\n")[1:] {
		script, _, _ := strings.Cut(block, "```")
		out = append(out, script)
	}
	if len(out) < least {
		return nil, fmt.Errorf("%s has %d blocks marked %q, want at least %d", document, len(out), mark, least)
	}
	return out, nil
}

// firstChange does what CONTRIBUTING.md tells a newcomer, in one shell. Where the clone comes from is replaced.
func (r *rehearsal) firstChange(ctx context.Context) error {
	blocks, err := r.blocks("CONTRIBUTING.md", "<!-- `make rehearse` runs it -->", 2)
	if err != nil {
		return err
	}
	script := strings.Join(blocks, "")
	if strings.Count(script, "https://"+library) != 1 {
		return fmt.Errorf("CONTRIBUTING.md does not clone the repository:\n%s", script)
	}
	folder := filepath.Join(r.tmp, "newcomer")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	script = strings.Replace(script, "https://"+library, r.top, 1) + "git status --porcelain\ngit show --stat --format=%s\n"
	out, err := r.commandWith(ctx, []string{"GIT_PAGER=cat", "GOWORK=", "GOFLAGS=", "MAKEFLAGS=", "MAKELEVEL="}, folder, "bash", "-euo", "pipefail", "-c", script)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if last := lines[len(lines)-1]; err == nil && (!strings.HasPrefix(strings.TrimSpace(last), "1 file changed, ") || strings.Contains(last, "deletion")) {
		err = fmt.Errorf("the commit is not exactly one new case:\n%s", out)
	}
	return err
}

// hub fetches the chart and looks for what Artifact Hub shows of it.
func (r *rehearsal) hub(ctx context.Context) error {
	image := r.registry.host() + "/sallyport-io/sallyport:" + r.version
	text, err := r.command(ctx, r.tmp, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "helm"), "show", "chart", "--plain-http",
		"oci://"+r.registry.host()+"/sallyport-io/charts/sallyport", "--version", strings.TrimPrefix(r.version, "v"))
	for _, want := range []string{"artifacthub.io/images: |", "image: " + image + "\n", "artifacthub.io/prerelease: \"true\"", "kind: Exemption", "kubeVersion: "} {
		if err == nil && !strings.Contains(text, want) {
			err = fmt.Errorf("the chart does not have %q:\n%s", want, text)
		}
	}
	return err
}
