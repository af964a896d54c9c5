// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/test/cases"
)

// cloud gives the same answer for every volume. It is the cluster.yaml of a case.
type cloud struct {
	Labels map[string]string `json:"labels"`
	Error  string            `json:"error"`
	Panic  bool              `json:"panic"`
}

func (c *cloud) GetLabelsForVolume(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
	switch {
	case c.Panic:
		panic("asked for a volume of another provider")
	case c.Error != "":
		return nil, errors.New(c.Error)
	}
	return c.Labels, nil
}

type labelerFunc func(context.Context, *corev1.PersistentVolume) (map[string]string, error)

func (f labelerFunc) GetLabelsForVolume(ctx context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
	return f(ctx, pv)
}

func newWebhooks(t testing.TB, settings, cluster []byte) []admission.Webhook {
	t.Helper()
	s := DefaultSettings()
	if err := yaml.UnmarshalStrict(settings, &s); err != nil {
		t.Fatal(err)
	}
	c := &cloud{}
	if err := yaml.UnmarshalStrict(cluster, c); err != nil {
		t.Fatal(err)
	}
	webhooks, err := New(c, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks
}

func TestCases(t *testing.T) { cases.Run(t, resource, newWebhooks) }

func TestDefinitionIsValid(t *testing.T) {
	for settings, want := range map[string]string{
		"sources: [gcePersistentDisk]": "has(object.spec.gcePersistentDisk)",
		"{}": "has(object.spec.awsElasticBlockStore) || has(object.spec.gcePersistentDisk) || has(object.spec.azureDisk) || " +
			"has(object.spec.cinder) || has(object.spec.vsphereVolume)",
	} {
		webhook := newWebhooks(t, []byte(settings), nil)[0]
		if err := webhook.Problems(); err != nil {
			t.Error(err)
		}
		if got := webhook.MatchConditions[0].Expression; got != want {
			t.Errorf("%s: the condition is %s", settings, got)
		}
		if webhook.FailurePolicy != "Ignore" {
			t.Error("a cloud that is away refuses volumes")
		}
	}
}

func TestSettingsReportEveryProblem(t *testing.T) {
	err := Settings{Sources: []Source{"gce", Cinder, Cinder}, RememberSeconds: -1, CallSeconds: 301}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`sources[0]: "gce": choose of awsElasticBlockStore`, "sources[2]: duplicate cinder",
		"rememberSeconds: -1", "callSeconds: 301", "maxCalls: 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if _, err := New(nil, Settings{}, nil); err == nil || !strings.Contains(err.Error(), "a labeler is required") || !strings.Contains(err.Error(), "sources: it is empty") {
		t.Errorf("New without anything: %v", err)
	}
}

func TestEveryProviderHasASource(t *testing.T) {
	var found []Source
	for _, provider := range []string{"aws", "gce", "azure", "openstack", "vsphere"} {
		source, ok := SourceOf(provider)
		if !ok {
			t.Errorf("%s has none", provider)
		}
		found = append(found, source)
	}
	if diff := cmp.Diff(sources, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if source, ok := SourceOf("external"); ok {
		t.Errorf("external has %s", source)
	}
}

func TestWhatIsNoVolumeIsRefusedWithoutItsValues(t *testing.T) {
	webhook := newWebhooks(t, nil, []byte("labels: {a: b}"))[0]
	for name, raw := range map[string]string{
		"an array": "[1]", "an invalid spec": `{"spec":"canary"}`, "invalid metadata": `{"metadata":"canary"}`,
		"invalid labels":                         `{"metadata":{"labels":"canary"},"spec":{"cinder":{"volumeID":"a"}}}`,
		"invalid annotations":                    `{"metadata":{"annotations":["canary"]}}`,
		"a zone that is not a string":            `{"metadata":{"labels":{"topology.kubernetes.io/zone":7}}}`,
		"an invalid source":                      `{"spec":{"cinder":"canary"}}`,
		"an invalid id":                          `{"spec":{"cinder":{"volumeID":["canary"]}}}`,
		"an invalid node affinity":               `{"spec":{"nodeAffinity":"canary","cinder":{"volumeID":"a"}}}`,
		"an invalid term":                        `{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[null]}},"cinder":{"volumeID":"a"}}}`,
		"an invalid expression":                  `{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":["canary"]}]}},"cinder":{"volumeID":"a"}}}`,
		"what no Go type takes is not repeated":  `{"spec":{"cinder":{"volumeID":"c"},"capacity":"canary"}}`,
		"what no Go type takes, in the metadata": `{"metadata":{"finalizers":"canary"},"spec":{"cinder":{"volumeID":"b"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp := cases.Handle(t, webhook, create([]byte(raw)))
			if resp.Allowed || resp.Status.Code != 400 || strings.Contains(resp.Status.Message, "canary") {
				t.Errorf("%+v", resp.Status)
			}
		})
	}
}

func TestWhatIsNotForTheWebhookIsAdmittedAsItIs(t *testing.T) {
	webhook := newWebhooks(t, nil, []byte("panic: true"))[0]
	for name, req := range map[string]*admissionv1.AdmissionRequest{
		"no object":        {Resource: resource, Operation: admissionv1.Create},
		"another resource": {Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(`{}`)}},
	} {
		if resp := cases.Handle(t, webhook, req); !resp.Allowed || len(resp.Patch) > 0 {
			t.Errorf("%s: %+v", name, resp)
		}
	}
}

func create(raw []byte) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{Resource: resource, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw}}
}

// plugin does what the admission plugin did, on a typed volume.
func plugin(pv *corev1.PersistentVolume, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	if pv.Labels == nil {
		pv.Labels = map[string]string{}
	}
	var expressions []corev1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pv.Labels[key] = labels[key]
		values := []string{labels[key]}
		if strings.HasSuffix(key, "/zone") {
			values = strings.Split(labels[key], "__")
			slices.Sort(values)
			values = slices.Compact(values)
		}
		expressions = append(expressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values})
	}
	if pv.Spec.NodeAffinity == nil {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{}
	}
	if pv.Spec.NodeAffinity.Required == nil {
		pv.Spec.NodeAffinity.Required = &corev1.NodeSelector{}
	}
	terms := &pv.Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(*terms) == 0 {
		*terms = []corev1.NodeSelectorTerm{{}}
	}
	for _, term := range *terms {
		for _, expression := range term.MatchExpressions {
			if _, ok := labels[expression.Key]; ok {
				return
			}
		}
	}
	for i := range *terms {
		(*terms)[i].MatchExpressions = append((*terms)[i].MatchExpressions, expressions...)
	}
}

// For any volume and labels, the result equals that of the plugin on the typed volume,
// and a second pass changes nothing.
func TestItDoesWhatThePluginDid(t *testing.T) {
	keys := append(topologyKeys[:], "example.com/cell")
	value := rapid.SampledFrom([]string{"a", "b", "a__b", "b__a__c", "x"})
	labels := rapid.MapOfN(rapid.SampledFrom(keys), value, 0, 5)
	expression := rapid.Custom(func(r *rapid.T) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{
			Key: rapid.SampledFrom(append(keys, "disk", "rack")).Draw(r, "key"), Operator: corev1.NodeSelectorOpExists,
		}
	})
	term := rapid.Custom(func(r *rapid.T) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: rapid.SliceOfN(expression, 0, 2).Draw(r, "expressions")}
	})
	rapid.Check(t, func(r *rapid.T) {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Labels: labels.Draw(r, "own")}}
		pv.Spec.Cinder = &corev1.CinderPersistentVolumeSource{VolumeID: "a"}
		if rapid.Bool().Draw(r, "affinity") {
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{}
			if rapid.Bool().Draw(r, "required") {
				pv.Spec.NodeAffinity.Required = &corev1.NodeSelector{NodeSelectorTerms: rapid.SliceOfN(term, 0, 3).Draw(r, "terms")}
			}
		}
		told := labels.Draw(r, "told")
		webhooks, err := New(&cloud{Labels: told}, DefaultSettings(), nil)
		if err != nil {
			r.Fatal(err)
		}
		raw, err := yaml.Marshal(pv)
		if err == nil {
			raw, err = yaml.YAMLToJSON(raw)
		}
		if err != nil {
			r.Fatal(err)
		}
		once := cases.Apply(t, raw, cases.Handle(t, webhooks[0], create(raw)))
		got := &corev1.PersistentVolume{}
		if err := yaml.Unmarshal(once, got); err != nil {
			r.Fatal(err)
		}
		want := pv.DeepCopy()
		plugin(want, told)
		if len(want.Labels) == 0 {
			want.Labels = got.Labels // empty and null are one
		}
		if diff := cmp.Diff(asJSON(r, want), asJSON(r, got)); diff != "" {
			r.Fatalf("(-plugin +webhook):\n%s", diff)
		}
		if again := cases.Handle(t, webhooks[0], create(once)); len(again.Patch) > 0 {
			r.Fatalf("the second pass changes %s", again.Patch.AppendJSON(nil))
		}
	})
}

func asJSON(r *rapid.T, pv *corev1.PersistentVolume) string {
	raw, err := yaml.Marshal(pv)
	if err != nil {
		r.Fatal(err)
	}
	return string(raw)
}

// FuzzVolume sends any valid JSON as a volume, with any text as labels.
func FuzzVolume(f *testing.F) {
	for _, c := range cases.All(f) {
		f.Add(c.Request(f, resource).Object.Raw, corev1.LabelTopologyZone, "a__b")
	}
	f.Fuzz(func(t *testing.T, raw []byte, key, value string) {
		if !jsontext.Value(raw).IsValid() { // the wire lets nothing else through
			return
		}
		webhooks, err := New(&cloud{Labels: map[string]string{key: value, corev1.LabelTopologyRegion: "r"}}, DefaultSettings(), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp := cases.Handle(t, webhooks[0], create(raw))
		if !resp.Allowed || len(raw) == 0 {
			return
		}
		once := cases.Apply(t, raw, resp)
		again := cases.Handle(t, webhooks[0], create(once))
		if !again.Allowed || len(again.Patch) > 0 {
			t.Fatalf("the second pass: %+v %s", again.Status, again.Patch.AppendJSON(nil))
		}
	})
}
