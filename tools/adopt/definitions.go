// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"

	"sigs.k8s.io/yaml"
)

// rendered are projects whose webhook configurations are patched by kustomize.
var rendered = []string{"sigs.k8s.io/jobset@v0.12.0", "sigs.k8s.io/kueue@v0.17.0"}

// printer prints the webhooks that `init --from` has defined, as configurations have them.
const printer = `package main

import (
	"encoding/json"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"MODULE/internal/definitions"
)

func main() {
	var webhooks []admissionregistrationv1.MutatingWebhook
	for _, w := range definitions.Webhooks(definitions.Handlers{}) {
		webhook := admissionregistrationv1.MutatingWebhook{
			Name: w.Name, Rules: w.Rules, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
			SideEffects: &w.SideEffects, TimeoutSeconds: &w.TimeoutSeconds, AdmissionReviewVersions: w.ReviewVersions,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: &w.Path}},
		}
		if w.MatchPolicy != "" {
			webhook.MatchPolicy = &w.MatchPolicy
		}
		if w.FailurePolicy != "" {
			webhook.FailurePolicy = &w.FailurePolicy
		}
		if w.ReinvocationPolicy != "" {
			webhook.ReinvocationPolicy = &w.ReinvocationPolicy
		}
		webhooks = append(webhooks, webhook)
	}
	if err := json.NewEncoder(os.Stdout).Encode(webhooks); err != nil {
		panic(err)
	}
}
`

// compareDefinitions compares what init --from defines for the projects with what kustomize renders of them.
func compareDefinitions(out io.Writer, top string, only func(module string) bool) error {
	tmp, err := os.MkdirTemp("", "adopt-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	command := filepath.Join(tmp, "sallyport")
	if _, err := goCommand(filepath.Join(top, "cmd"), "build", "-o", command, "./sallyport"); err != nil {
		return err
	}
	var errs []error
	for i, module := range rendered {
		if !only(module) {
			continue
		}
		folder := filepath.Join(tmp, fmt.Sprint(i))
		want, got, err := definitionsOf(folder, top, command, module)
		if err == nil {
			err = equalWebhooks(got, want)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", module, err))
			continue
		}
		fmt.Fprintf(out, "%s: init --from defines %d of %d webhooks as config/default has them\n", module, len(got), len(want))
	}
	return errors.Join(errs...)
}

// definitionsOf are the webhooks that are rendered, and those that init defines for them.
func definitionsOf(folder, top, command, module string) (want, got []map[string]any, err error) {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, nil, err
	}
	if err := copied(folder, module); err != nil {
		return nil, nil, err
	}
	manifests, err := kustomized(filepath.Join(folder, "config", "default"))
	if err != nil {
		return nil, nil, err
	}
	if want, err = webhooksIn(manifests); err != nil {
		return nil, nil, err
	}
	define := exec.Command(command, "init", "--from", "-")
	define.Dir, define.Stdin = folder, bytes.NewReader(manifests)
	if output, err := define.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("init --from -: %w\n%s", err, output)
	}
	path, err := goCommand(folder, "list", "-m")
	if err != nil {
		return nil, nil, err
	}
	program := bytes.ReplaceAll([]byte(printer), []byte("MODULE"), bytes.TrimSpace(path))
	at := filepath.Join(folder, "adopted")
	if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "main.go"), program, 0o600)); err != nil {
		return nil, nil, err
	}
	if err := require(folder, top, "./adopted"); err != nil {
		return nil, nil, err
	}
	printed, err := goCommand(folder, "run", "./adopted")
	if err != nil {
		return nil, nil, err
	}
	return want, got, json.Unmarshal(printed, &got)
}

// webhooksIn are the webhooks of all configurations in manifests, those that mutate first.
func webhooksIn(manifests []byte) ([]map[string]any, error) {
	var mutating, validating []map[string]any
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		var configuration struct {
			Kind     string           `json:"kind"`
			Webhooks []map[string]any `json:"webhooks"`
		}
		if err := yaml.Unmarshal(document, &configuration); err != nil {
			return nil, err
		}
		switch configuration.Kind {
		case "MutatingWebhookConfiguration":
			for _, webhook := range configuration.Webhooks {
				defaulted(webhook, "reinvocationPolicy", "Never")
			}
			mutating = append(mutating, configuration.Webhooks...)
		case "ValidatingWebhookConfiguration":
			validating = append(validating, configuration.Webhooks...)
		}
	}
	return append(mutating, validating...), nil
}

// equalWebhooks names the fields that differ. Those without a value have the API server's default.
func equalWebhooks(got, want []map[string]any) error {
	if len(want) == 0 || len(got) != len(want) {
		return fmt.Errorf("%d webhooks are defined, and %d rendered", len(got), len(want))
	}
	var errs []error
	for i := range want {
		for _, webhook := range []map[string]any{got[i], want[i]} {
			defaulted(webhook, "matchPolicy", "Equivalent")
			defaulted(webhook, "failurePolicy", "Fail")
			defaulted(webhook, "timeoutSeconds", 10.)
			defaulted(webhook, "namespaceSelector", map[string]any{})
			defaulted(webhook, "objectSelector", map[string]any{})
			// Where the server is belongs to the installation.
			client, _ := webhook["clientConfig"].(map[string]any)
			service, _ := client["service"].(map[string]any)
			webhook["clientConfig"] = service["path"]
		}
		fields := map[string]bool{}
		for _, webhook := range []map[string]any{got[i], want[i]} {
			for field := range webhook {
				fields[field] = true
			}
		}
		for field := range fields {
			if !reflect.DeepEqual(got[i][field], want[i][field]) {
				errs = append(errs, fmt.Errorf("webhook %v: %s is defined as %v, and rendered as %v", want[i]["name"], field, got[i][field], want[i][field]))
			}
		}
	}
	return errors.Join(errs...)
}

func defaulted(webhook map[string]any, field string, value any) {
	if _, ok := webhook[field]; !ok {
		webhook[field] = value
	}
}
