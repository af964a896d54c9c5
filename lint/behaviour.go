// SPDX-License-Identifier: Apache-2.0

package lint

// behaviours are rules that objects do not show. They are in the reference so that
// whoever writes a webhook finds all rules in one place.
func behaviours() []Rule {
	list := []struct{ id, what, why, fix string }{
		{"idempotent", "A second call on the own result changes nothing, also after the other webhooks on the resource.",
			"The API server calls again what has reinvocationPolicy IfNeeded, and clients send objects back.", "Run the handler on its own result in a test, and compare."},
		{"minimal-patch", "Only what has to change is patched; whole arrays are never replaced.",
			"Fields and elements that others set get lost otherwise.", "Compute the patch against the bytes that came."},
		{"immutable", "Immutable objects and mirror pods (annotation kubernetes.io/config.mirror) are left alone.",
			"Such requests fail, whatever the failure policy.", "Test with such objects."},
		{"own-objects", "Own objects are known by a label and left alone.",
			"The server cannot start otherwise, or answers to itself.", "Test with an object of the server itself."},
		{"consistent", "Validation accepts whatever mutation made, and judges the final state.",
			"Objects are refused that nobody can correct otherwise.", "Send what mutation made through validation in a test."},
		{"unknown-fields", "Fields that the binary does not know survive, and are not refused.",
			"Clusters are newer than binaries.", "Test with an object that has a field nobody knows."},
		{"dry-run", "A dry run has no effects.",
			"kubectl diff and server-side dry runs call the webhook too.", "Test with dryRun set that nothing is written."},
		{"api-calls", "A review makes few calls of the API, or none: informers instead of reads.",
			"Each call adds its latency to the request, and its outage to the outages.", "Count calls in a test."},
		{"rollout", "A new webhook comes server first, then with Ignore for one namespace, then for more, then with Fail.",
			"A mistake is met by few.", "Write the steps down, and run them in a test cluster."},
		{"upgrade", "The webhooks work across an upgrade of Kubernetes, and of the project itself.",
			"Old and new replicas serve side by side, and objects arrive in new versions.", "Run both versions side by side in a test."},
		{"observability", "There are audit annotations, metrics, and an alert on latency and on calls that failed open.",
			"Nobody sees otherwise that an object was admitted without its webhook.", "Alert on apiserver_admission_webhook_fail_open_count and on the duration of calls."},
	}
	var out []Rule
	for _, b := range list {
		out = append(out, Rule{ID: "behaviour-" + b.id, Group: groupBehaviour, What: b.what, Why: b.why, Fix: b.fix, Source: fromGP})
	}
	return out
}
