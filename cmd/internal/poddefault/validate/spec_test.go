// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

func parseSpec(t testing.TB, data string) *kubeflowv1alpha1.PodDefaultSpec {
	t.Helper()
	spec := &kubeflowv1alpha1.PodDefaultSpec{}
	if err := yaml.UnmarshalStrict([]byte(data), spec); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return spec
}

func TestCheckNamesEveryProblemByItsField(t *testing.T) {
	for data, want := range map[string][]string{
		`selector: {matchLabels: {use: "true"}}`:                                                         nil,
		`selector: {matchExpressions: [{key: a, operator: Like}]}`:                                       {"spec.selector.matchExpressions[0].operator"},
		`selector: {matchLabels: {"a b": "c d"}}`:                                                        {"spec.selector.matchLabels", "spec.selector.matchLabels"},
		`{env: [{name: A}, {name: A, value: b}, {name: ""}, {name: "a=b"}]}`:                             {"spec.env[1].name", "spec.env[2].name", "spec.env[3].name"},
		`{volumes: [{name: a}, {name: a, secret: {secretName: s}}, {name: A_}]}`:                         {"spec.volumes[1].name", "spec.volumes[2].name"},
		`{volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}, {name: c, mountPath: ""}]}`: {"spec.volumeMounts[1].mountPath", "spec.volumeMounts[2].mountPath"},
		`{volumeMounts: [{name: a, mountPath: /a}], volumeDevices: [{name: b, devicePath: /a}]}`:         {"spec.volumeDevices[0].devicePath"},
		`{labels: {"a b": x, c: "d e"}, nodeSelector: {"a b": x}, annotations: {"a/b/c": x}}`:            {"spec.annotations", "spec.labels", "spec.labels[c]", "spec.nodeSelector"},
		`{annotations: {sallyport.io/poddefaults: x, poddefault.admission.kubeflow.org/poddefault-x: x}}`: {
			"spec.annotations[poddefault.admission.kubeflow.org/poddefault-x]", "spec.annotations[sallyport.io/poddefaults]"},
		`{sidecars: [{name: a, image: a}, {name: a, image: b}], initContainers: [{name: a, image: a}, {name: B_, image: a}]}`: {"spec.initContainers[1].name", "spec.sidecars[0].name", "spec.sidecars[1].name", "spec.sidecars[1].name"},
		`{sidecars: [{name: a, image: a}], positions: [{name: a, place: Last}, {name: a, place: Beside}]}`:                    {"spec.positions[1].name", "spec.positions[1].place"},
		`{sidecars: [{name: a, image: a}], positions: [{name: a, place: Before, container: a}]}`:                              {"spec.positions[0].container"},
		`{sidecars: [{name: a, image: a}], positions: [{name: a, place: First, container: b}]}`:                               {"spec.positions[0].container"},
		`{positions: [{name: a, place: ""}]}`: {"spec.positions[0].name", "spec.positions[0].place"},
		`{conflictPolicy: Ask, mode: Off, containerSelector: {types: [All], names: [a], excludeNames: [a]}}`: {
			"spec.conflictPolicy", "spec.containerSelector.names[0]", "spec.containerSelector.types[0]", "spec.mode"},
		`{serviceAccountName: A_, priorityClassName: B_, runtimeClassName: C_, terminationGracePeriodSeconds: -1}`: {
			"spec.priorityClassName", "spec.runtimeClassName", "spec.serviceAccountName", "spec.terminationGracePeriodSeconds"},
		`{exclusiveGroup: "not/a value", containerSelector: {first: true, types: [Container, Injected]}}`: {
			"spec.containerSelector.types[1]", "spec.exclusiveGroup"},
		`{resources: {requests: {cpu: "2", memory: "-1"}, limits: {cpu: "1"}}}`: {"spec.resources.requests[cpu]", "spec.resources.requests[memory]"},
		`{hostAliases: [{ip: x, hostnames: ["a b"]}, {ip: 10.0.0.1}, {ip: 10.0.0.1, hostnames: [a]}]}`: {
			"spec.hostAliases[0].hostnames[0]", "spec.hostAliases[0].ip", "spec.hostAliases[2].ip"},
		`{dnsConfig: {nameservers: [a, 10.0.0.1, 10.0.0.2, 10.0.0.3], options: [{name: a}, {name: a, value: b}, {}]}}`: {
			"spec.dnsConfig.nameservers", "spec.dnsConfig.nameservers[0]", "spec.dnsConfig.options[1].name", "spec.dnsConfig.options[2].name"},
		`{ports: [{containerPort: 0}, {containerPort: 1, protocol: ICMP}, {containerPort: 2}, {containerPort: 2, protocol: TCP, name: A_}]}`: {
			"spec.ports[0].containerPort", "spec.ports[1].protocol", "spec.ports[3].containerPort", "spec.ports[3].name", "spec.ports[3].name"},
		`{containerSecurityContext: {capabilities: {add: [A], drop: [A]}}, podSecurityContext: {sysctls: [{name: a, value: b}, {name: a, value: c}]}}`: {
			"spec.containerSecurityContext.capabilities.add[0]", "spec.podSecurityContext.sysctls[1].name"},
		`{topologySpreadConstraints: [{topologyKey: "", whenUnsatisfiable: Maybe, maxSkew: 0}]}`: {
			"spec.topologySpreadConstraints[0].maxSkew", "spec.topologySpreadConstraints[0].topologyKey", "spec.topologySpreadConstraints[0].whenUnsatisfiable"},
		`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}}`: {
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"},
		`{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: Gt, values: [x]}]}}]}}}`: {
			"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]",
			"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"},
		`{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: ""}]}}}`: {
			"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"},
	} {
		errs, _ := Spec(parseSpec(t, data), field.NewPath("spec"))
		var got []string
		for _, err := range errs {
			got = append(got, err.Field)
		}
		if diff := cmp.Diff(want, got, sorted); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", data, diff, errs)
		}
	}
}

var sorted = cmp.Transformer("sorted", func(in []string) map[string]int {
	out := map[string]int{}
	for _, s := range in {
		out[s]++
	}
	return out
})

func TestCheckWarnsOfWhatIsSuspicious(t *testing.T) {
	for data, want := range map[string]string{
		`{selector: {matchLabels: {use: "true"}}}`: "",
		`{selector: {}}`: "spec.selector: the selector is empty",
		`{selector: {matchLabels: {use: "yes"}}}`:                                                                                           `does not want "true" for the label use`,
		`{selector: {matchLabels: {a: "true", b: "true"}}}`:                                                                                 "several matchLabels",
		`{selector: {matchExpressions: [{key: a, operator: Exists}]}}`:                                                                      "no matchLabels",
		`{selector: {matchLabels: {use: "true"}}, env: [{name: A, value: x}, {name: A, value: x}]}`:                                         "spec.env[1]: it is the same as spec.env[0], and applies once",
		`{selector: {matchLabels: {use: "true"}}, sidecars: [{name: a, image: a}, {name: b, image: b}, {name: a, image: a}]}`:               "spec.sidecars[2]: it is the same as spec.sidecars[0], and applies once",
		`{selector: {matchLabels: {use: "true"}}, volumeMounts: [{name: v, mountPath: /v}]}`:                                                "spec.volumes: the volume v is mounted but not defined",
		`{selector: {matchLabels: {use: "true"}}, env: [{name: A, value: "${namespace}"}]}`:                                                 "spec.env[0].value: the placeholder stays as it is",
		`{selector: {matchLabels: {use: "true"}}, substitute: true, args: ["${pod.name}"]}`:                                                 "spec.args[0]: ${pod.name} stays as it is",
		`{selector: {matchLabels: {use: "true"}}, substitute: true, args: ["$${pod.name} ${HOME} $(A)"]}`:                                   "",
		`{selector: {matchLabels: {use: "true"}}, dnsPolicy: None}`:                                                                         "spec.dnsPolicy: pods without dnsConfig.nameservers",
		`{selector: {matchLabels: {use: "true"}}, resources: {claims: [{name: gpu}]}}`:                                                      "spec.resources.claims: pods without these",
		`{selector: {matchLabels: {use: "true"}}, resources: {claims: [{name: gpu}]}, resourceClaims: [{name: gpu, resourceClaimName: a}]}`: "",
		`{selector: {matchLabels: {use: "true"}}, containerSecurityContext: {procMount: Unmasked}}`:                                         "spec.containerSecurityContext.procMount: pods without hostUsers",
		`{selector: {matchLabels: {use: "true"}}, containerSecurityContext: {procMount: Unmasked}, hostUsers: false}`:                       "",
		`{selector: {matchLabels: {use: "true"}}, resources: {limits: {nvidia.com/gpu: "1"}}}`:                                              "spec.resources.limits[nvidia.com/gpu]: each container that gets it has its own",
		`{selector: {matchLabels: {use: "true"}}, resources: {limits: {nvidia.com/gpu: "1", cpu: "1"}}, containerSelector: {first: true}}`:  "",
	} {
		errs, warnings := Spec(parseSpec(t, data), field.NewPath("spec"))
		if len(errs) > 0 {
			t.Errorf("%s: %v", data, errs)
		}
		if got := strings.Join(warnings, "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", data, got, want)
		}
	}
}
