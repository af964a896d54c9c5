// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
)

func podDefault(t testing.TB, name, spec string) *kubeflowv1alpha1.PodDefault {
	t.Helper()
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, ResourceVersion: "7"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &pd.Spec); err != nil {
		t.Fatal(err)
	}
	return pd
}

func TestWhatWouldSilentlyDifferIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		specs []string
		want  []string // each refusal, in any order
	}{
		"a field that policies cannot set":         {[]string{"{priorityClassName: x, terminationGracePeriodSeconds: 1}"}, []string{"spec.priorityClassName: policies cannot", "spec.terminationGracePeriodSeconds: policies cannot"}},
		"a conflict policy that keeps or replaces": {[]string{"{conflictPolicy: Override}"}, []string{"spec.conflictPolicy: Override"}},
		"an audit":                                      {[]string{"{mode: Audit}"}, []string{"spec.mode: Audit"}},
		"placeholders":                                  {[]string{"{substitute: true}"}, []string{"spec.substitute"}},
		"an object that can never work":                 {[]string{"{env: [{name: ''}]}"}, []string{"it can never work: spec.env[0].name"}},
		"a mount without its volume":                    {[]string{"{volumeMounts: [{name: v, mountPath: /v}]}"}, []string{"the volume v is mounted"}},
		"a mount of a sidecar without its volume":       {[]string{"{sidecars: [{name: s, image: i, volumeMounts: [{name: v, mountPath: /v}]}]}"}, []string{"the volume v is mounted"}},
		"an annotation that excludes":                   {[]string{"{annotations: {poddefault.admission.kubeflow.org/exclude: 'true'}}"}, []string{"spec.annotations[poddefault.admission.kubeflow.org/exclude]"}},
		"a number that CEL turns into a string":         {[]string{"{sidecars: [{name: s, image: i, lifecycle: {preStop: {sleep: {seconds: 9007199254740993}}}}]}"}, []string{"a number beyond"}},
		"a label that selects another":                  {[]string{"{labels: {a: '1'}, selector: {matchLabels: {b: '1'}}}", "{selector: {matchExpressions: [{key: a, operator: Exists}]}}"}, []string{"the selector of pd-1 looks at this label"}},
		"a label that its own selector excludes":        {[]string{"{labels: {a: '1'}, selector: {matchExpressions: [{key: a, operator: DoesNotExist}]}}"}, []string{"the selector of pd-0 looks at this label"}},
		"different values where both may select":        {[]string{"{env: [{name: A, value: '1'}], selector: {matchLabels: {a: '1'}}}", "{env: [{name: A, value: '2'}], selector: {matchLabels: {b: '1'}}}"}, []string{"pd-0 and pd-1: env A"}},
		"a volume that asks for more than another does": {[]string{"{volumes: [{name: v, secret: {secretName: s, defaultMode: 256}}]}", "{volumes: [{name: v, secret: {secretName: s}}]}"}, []string{"pd-0 and pd-1: volume v"}},
		"two commands of which one denies":              {[]string{"{command: [a], conflictPolicy: Deny}", "{command: [b]}"}, []string{"pd-0 and pd-1: command"}},
		"a mount where a token is taken away": {[]string{"{automountServiceAccountToken: false}",
			"{volumes: [{name: v}], volumeMounts: [{name: v, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]}"}, []string{"is where the token is that pd-0 takes away"}},
		"different values where one at most selects": {[]string{"{env: [{name: A, value: '1'}], selector: {matchLabels: {a: '1'}}}", "{env: [{name: A, value: '2'}], selector: {matchLabels: {a: '2'}}}"}, nil},
		"alternatives":                        {[]string{"{exclusiveGroup: gpu}"}, []string{"spec.exclusiveGroup: policies cannot do this"}},
		"a rollout":                           {[]string{"{rollout: {steps: [{percent: 10}]}}"}, []string{"spec.rollout: policies cannot do this"}},
		"the first container alone":           {[]string{"{containerSelector: {first: true}}"}, []string{"spec.containerSelector: policies cannot do this"}},
		"commands and accounts have an order": {[]string{"{command: [a], serviceAccountName: a}", "{command: [b], serviceAccountName: b}"}, nil},
		"what says nothing":                   {[]string{"{desc: x, mode: Enforce, conflictPolicy: Deny, containerSelector: {}, resources: {}}"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var pds []*kubeflowv1alpha1.PodDefault
			for i, spec := range test.specs {
				pds = append(pds, podDefault(t, "pd-"+string(rune('0'+i)), spec))
			}
			exported, err := Export(pds, poddefault.DefaultSettings())
			if len(test.want) == 0 {
				if err != nil || len(exported.Objects) != 4 {
					t.Fatalf("it is refused: %v", err)
				}
				return
			}
			if err == nil || exported != nil {
				t.Fatal("it is exported")
			}
			lines := strings.Split(err.Error(), "\n")
			for _, want := range test.want {
				if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
					t.Errorf("no line says %q:\n%v", want, err)
				}
			}
			if len(lines) != len(test.want) {
				t.Errorf("%d refusals, want %d:\n%v", len(lines), len(test.want), err)
			}
		})
	}
}

func TestObjectsNeedANameANamespaceAndRoom(t *testing.T) {
	nameless := podDefault(t, "", "{}")
	nameless.Namespace = ""
	twice := podDefault(t, "twice", "{}")
	huge := podDefault(t, "huge", "{}")
	huge.Spec.Annotations = map[string]string{"note": strings.Repeat("x", maxExpression)}
	for _, test := range []struct {
		objects []*kubeflowv1alpha1.PodDefault
		text    string
	}{
		{[]*kubeflowv1alpha1.PodDefault{nameless}, "metadata.name"},
		{[]*kubeflowv1alpha1.PodDefault{nameless}, "metadata.namespace"},
		{[]*kubeflowv1alpha1.PodDefault{twice, twice.DeepCopy()}, "it was given twice"},
		{[]*kubeflowv1alpha1.PodDefault{huge}, "the API server parses 100000"},
	} {
		if _, err := Export(test.objects, poddefault.DefaultSettings()); err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("no refusal says %q: %v", test.text, err)
		}
	}
	if _, err := Export(nil, poddefault.Settings{}); err == nil {
		t.Error("invalid settings are taken")
	}
}

// The API server evaluates policies in map order, so everything with an order is in one
// policy.
func TestOnePolicyOfEachKindForANamespace(t *testing.T) {
	late, early := podDefault(t, "a", "{priority: 1}"), podDefault(t, "b", "{priority: -1}")
	other := podDefault(t, "c", "{}")
	other.Namespace = "team-b"
	other.ResourceVersion = ""
	exported, err := Export([]*kubeflowv1alpha1.PodDefault{late, other, early}, poddefault.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	again, err := Export([]*kubeflowv1alpha1.PodDefault{early, late, other}, poddefault.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	one, _ := json.Marshal(exported)
	two, _ := json.Marshal(again)
	if string(one) != string(two) {
		t.Error("the order in which the objects are given shows")
	}
	var policies []*admissionregistrationv1.MutatingAdmissionPolicy
	for i, object := range exported.Objects {
		if p, ok := object.(*admissionregistrationv1.MutatingAdmissionPolicy); ok {
			policies = append(policies, p)
			if _, ok := exported.Objects[i-1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); !ok {
				t.Error("what injects comes before what refuses")
			}
		}
	}
	if len(policies) != 2 || policies[0].Name != NamePrefix+"team-a" || policies[1].Name != NamePrefix+"team-b" {
		t.Fatalf("policies: %v", policies)
	}
	mutations := policies[0].Spec.Mutations
	if len(mutations) != 1 {
		t.Fatalf("mutations: %+v", mutations)
	}
	first, then, ok := strings.Cut(mutations[0].JSONPatch.Expression, "poddefault-b")
	if !ok || strings.Contains(first, "poddefault-a") || !strings.Contains(then, "poddefault-a") {
		t.Errorf("the mutation: %s", mutations[0].JSONPatch.Expression)
	}
	if !strings.Contains(strings.Join(exported.Notes, "\n"), "have no resourceVersion") {
		t.Errorf("nothing says that marks are empty: %v", exported.Notes)
	}
}

func TestOneMutationInjectsWhatSharesNoElement(t *testing.T) {
	different := make([]string, 2*maxInStep)
	for i := range different {
		different[i] = fmt.Sprintf("{env: [{name: V%d, value: '1'}]}", i)
	}
	large := "{annotations: {note: '" + strings.Repeat("x", maxExpression/5*2) + "'}}"
	for name, test := range map[string]struct {
		specs []string
		want  int
	}{
		"different elements of the same lists":    {[]string{"{env: [{name: A}], labels: {a: '1'}}", "{env: [{name: B}], labels: {b: '1'}}"}, 1},
		"the same variable":                       {[]string{"{env: [{name: A}]}", "{env: [{name: A}]}", "{env: [{name: B}]}"}, 2},
		"the same label":                          {[]string{"{labels: {a: '1'}}", "{labels: {a: '1'}}"}, 2},
		"the same toleration":                     {[]string{"{tolerations: [{key: a}]}", "{tolerations: [{key: a, operator: Equal}]}"}, 2},
		"a sidecar with an init container's name": {[]string{"{sidecars: [{name: a, image: i}], selector: {matchLabels: {a: '1'}}}", "{initContainers: [{name: a, image: i}], selector: {matchLabels: {a: '2'}}}"}, 2},
		"two commands":                            {[]string{"{command: [a]}", "{command: [b]}"}, 2},
		"two accounts":                            {[]string{"{serviceAccountName: a}", "{serviceAccountName: b}"}, 2},
		"the same for tokens, which stay":         {[]string{"{automountServiceAccountToken: true}", "{automountServiceAccountToken: true}"}, 2},
		"a token that is taken away, at the end":  {[]string{"{automountServiceAccountToken: false}"}, 2},
		"as many as one takes, twice":             {different, 2},
		"three long ones":                         {[]string{large, strings.Replace(large, "note", "other", 1), strings.Replace(large, "note", "third", 1)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var pds []*kubeflowv1alpha1.PodDefault
			for i, spec := range test.specs {
				pds = append(pds, podDefault(t, fmt.Sprintf("pd-%02d", i), spec))
			}
			exported, err := Export(pds, poddefault.DefaultSettings())
			if err != nil {
				t.Fatal(err)
			}
			mutations := exported.Objects[2].(*admissionregistrationv1.MutatingAdmissionPolicy).Spec.Mutations
			if len(mutations) != test.want {
				t.Errorf("%d mutations, want %d", len(mutations), test.want)
			}
			for _, m := range mutations {
				if n := utf8.RuneCountInString(m.JSONPatch.Expression); n > maxExpression {
					t.Errorf("an expression of %d characters", n)
				}
			}
			if want := fmt.Sprintf("(here %d at most)", test.want); !strings.Contains(strings.Join(exported.Notes, "\n"), want) {
				t.Errorf("no note says %q: %q", want, exported.Notes)
			}
		})
	}
}

func TestLiteralsHaveOneTypeEach(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{map[string]string{"b": "2", "a": "it's \"1\"\n"}, `{"a": "it's \"1\"\n", "b": "2"}`},
		{corev1.ContainerPort{ContainerPort: 80, Name: "http"}, `{"containerPort": dyn(80), "name": dyn("http")}`},
		{[]string{"a", "b"}, `["a", "b"]`},
		{corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, `{"emptyDir": dyn({}), "name": dyn("v")}`},
		{corev1.ResourceList{"cpu": resource.MustParse("0.5")}, `{"cpu": "500m"}`},
		{true, "true"},
	} {
		if got := literal(test.value); got != test.want {
			t.Errorf("%+v is %s, want %s", test.value, got, test.want)
		}
	}
}
