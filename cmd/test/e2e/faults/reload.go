// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// reloadRate is how many creates are offered in a second, which is more than most
// machines make.
const reloadRate = 500

// podDefaultEntry begins a list of webhooks. Losses show as pods that fail, as in other rows.
const podDefaultEntry = `webhooks:
- name: poddefault
  settings: {guard: Fail, authorizeAuthors: "off"}
`

// reloadConfigurations are those of the row, by turns. Each has another set of webhooks, or other
// settings, than the one before; the last of them is invalid.
var reloadConfigurations = []struct {
	text string
	good bool
}{
	{podDefaultEntry + `- name: imagepull
  settings: {exemptImages: [registry.example.com/base]}
`, true},
	{podDefaultEntry + `  timeoutSeconds: 7
- name: imagepull
  settings: {allowedRegistries: [registry.example.com]}
- name: servicetype
`, true},
	{podDefaultEntry + `  objectSelector: {matchExpressions: [{key: never-injected, operator: DoesNotExist}]}
`, true},
	{podDefaultEntry + `  failurePolicy: Never
- name: no-such-webhook
`, false},
}

// configReload gives two replicas another configuration, again and again, as a mounted
// ConfigMap is changed: webhooks come, go and get other settings, while pods are created
// that all of them are asked about.
func configReload(ctx context.Context, c *cluster, rounds int, out *result) error {
	mount := filepath.Join(c.dir, "reload")
	if err := os.MkdirAll(mount, 0o700); err != nil {
		return err
	}
	file := filepath.Join(mount, "config.yaml")
	if err := writeConfiguration(mount, file, 0, podDefaultEntry); err != nil {
		return err
	}
	live, err := c.deploy(ctx, 2, "--config", file)
	if err != nil {
		return err
	}
	if err := c.awaitLeader(ctx); err != nil {
		return err
	}
	rate := reloadRate
	if c.settings.short {
		rate = 2 * shortRate
	}
	s, err := c.startStreamAt(ctx, "pod", typicalPodDefaults, rate)
	if err != nil {
		return err
	}
	good, bad := 0, 0
	for round := range rounds {
		next := reloadConfigurations[round%len(reloadConfigurations)]
		if err := writeConfiguration(mount, file, round+1, next.text); err != nil {
			return err
		}
		result, want := "success", &good
		if !next.good {
			result, want = "failure", &bad
		}
		*want++
		metric := fmt.Sprintf("sallyport_config_reloads_total{result=%q}", result)
		for _, r := range live {
			if err := lab.Await(ctx, time.Minute, r.Name+" to read the configuration", func(ctx context.Context) error {
				got, err := r.metric(ctx, metric)
				if err == nil && int(got) < *want {
					err = fmt.Errorf("%s is %v, not %d", metric, got, *want)
				}
				return err
			}); err != nil {
				return err
			}
			if err := r.probe(ctx, 10*time.Second); err != nil {
				out.problemf("round %d: %s is not ready: %v", round, r.Name, err)
			}
		}
		if !lab.Sleep(ctx, 4*time.Second) { // all that comes and goes has done so
			return ctx.Err()
		}
	}
	t := s.stop(ctx, out)
	out.requireInjected(t)
	out.requireNoFailure(t.failures, "")
	out.notef("%d good configurations and %d bad ones, read by each of 2 replicas", good, bad)
	return c.withdraw(ctx, live)
}

// writeConfiguration puts a configuration where file is, as the kubelet changes what is
// mounted: a symbolic link leads to another folder from one moment to the next.
func writeConfiguration(mount, file string, n int, text string) error {
	folder := fmt.Sprintf("..version-%d", n)
	if err := os.Mkdir(filepath.Join(mount, folder), 0o700); err != nil {
		return err
	}
	text = "apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\n" + text
	if err := os.WriteFile(filepath.Join(mount, folder, filepath.Base(file)), []byte(text), 0o600); err != nil {
		return err
	}
	link := filepath.Join(mount, "..data")
	if err := os.Symlink(folder, link+"-next"); err != nil {
		return err
	}
	if err := os.Rename(link+"-next", link); err != nil {
		return err
	}
	if n > 0 {
		return nil
	}
	return os.Symlink(filepath.Join("..data", filepath.Base(file)), file)
}
