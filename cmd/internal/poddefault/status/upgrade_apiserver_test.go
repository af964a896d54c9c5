// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testUpgrade stores objects by a definition without defaults, records their revisions, and brings
// the definition with defaults: the objects that the API server then returns have other specs, and
// the same revisions.
func testUpgrade(t *testing.T, config *rest.Config, clients kubernetes.Interface) {
	client, err := store.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	definitions := apiextensionsclient.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	definition, err := definitions.Get(t.Context(), "poddefaults.kubeflow.org", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	current := definition.Spec.DeepCopy()
	write := func(spec *apiextensionsv1.CustomResourceDefinitionSpec, schema func(map[string]any)) {
		t.Helper()
		definition, err := definitions.Get(t.Context(), definition.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		spec.DeepCopyInto(&definition.Spec)
		schemaOf := &definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		into := map[string]any{}
		data, err := json.Marshal(*schemaOf)
		if err == nil {
			err = json.Unmarshal(data, &into)
		}
		if err != nil {
			t.Fatal(err)
		}
		schema(into)
		if data, err = json.Marshal(into); err == nil {
			*schemaOf = &apiextensionsv1.JSONSchemaProps{}
			err = json.Unmarshal(data, *schemaOf)
		}
		if err == nil {
			_, err = definitions.Update(t.Context(), definition, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	defaulted := func(ctx context.Context) (bool, error) {
		probe := onServer("probe", "probe", "1")
		err := client.Post().Namespace(probe.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Param("dryRun", "All").Body(probe).Do(ctx).Into(probe)
		return probe.Spec.ConflictPolicy != "", err
	}
	write(current, withoutDefaults)
	lab.Eventually(t.Context(), t, patience, "the definition without defaults", func(ctx context.Context) (bool, error) {
		is, err := defaulted(ctx)
		return !is, err
	})

	objects := upgraded(t)
	for _, pd := range objects {
		create(t, client, pd)
	}
	history := revision.NewClient(clients.Discovery().RESTClient())
	// settled waits for a status of the latest generation of each object, which its revision is in.
	settled := func(t *testing.T) map[string]string {
		t.Helper()
		revisions := map[string]string{}
		for _, pd := range objects {
			lab.Eventually(t.Context(), t, patience, "the status of "+pd.Name, func(ctx context.Context) (bool, error) {
				got := &kubeflowv1alpha1.PodDefault{}
				err := client.Get().Namespace(pd.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Name(pd.Name).Do(ctx).Into(got)
				if revisions[pd.Name] = got.Status.CurrentRevision; got.Status.Rollout != nil && got.Status.Rollout.Step != 0 {
					t.Errorf("%s: a rollout is in step %d", pd.Name, got.Status.Rollout.Step)
				}
				return got.Status.CurrentRevision != "" && got.Status.ObservedGeneration == got.Generation, err
			})
		}
		return revisions
	}
	var before, after map[string]string
	t.Run("before", func(t *testing.T) {
		run(t, config, true)
		before = settled(t)
	})
	write(current, func(map[string]any) {})
	lab.Eventually(t.Context(), t, patience, "the definition with defaults", defaulted)
	for _, pd := range objects { // another generation, and nothing that a revision has
		err := client.Patch("application/merge-patch+json").Namespace(pd.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Name(pd.Name).
			Body([]byte(`{"spec":{"desc":"after the upgrade"}}`)).Do(t.Context()).Into(pd)
		if err != nil || pd.Spec.ConflictPolicy == "" || pd.Spec.Mode == "" || pd.Spec.RevisionHistoryLimit == nil || *pd.Spec.Rollout.Steps[0].Percent != 100 {
			t.Errorf("%s has no defaults: %+v, %v", pd.Name, pd.Spec, err)
		}
	}
	t.Run("after", func(t *testing.T) {
		run(t, config, true)
		after = settled(t)
	})
	for _, pd := range objects {
		if before[pd.Name] != after[pd.Name] {
			t.Errorf("%s: revision %s became %s", pd.Name, before[pd.Name], after[pd.Name])
		}
		recorded := 0
		if err := history.EachOf(t.Context(), pd.Namespace, pd.Name, func(*revision.Record) { recorded++ }); err != nil || recorded != 1 {
			t.Errorf("%s has %d revisions, %v", pd.Name, recorded, err)
		}
		if err := client.Delete().Namespace(pd.Namespace).Resource(kubeflowv1alpha1.PodDefaultResource).Name(pd.Name).Do(t.Context()).Error(); err != nil {
			t.Error(err)
		}
	}
}

// upgraded are objects that set every field, without those that have a default, and with a rollout.
func upgraded(t *testing.T) (objects []*kubeflowv1alpha1.PodDefault) {
	t.Helper()
	data, err := os.ReadFile("../testdata/valid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		pd := onServer("", "", "")
		pd.Spec = kubeflowv1alpha1.PodDefaultSpec{}
		if err := yaml.UnmarshalStrict(document, pd); err != nil {
			t.Fatal(err)
		}
		pd.Namespace = metav1.NamespaceDefault
		pd.Spec.ConflictPolicy, pd.Spec.Mode, pd.Spec.Priority, pd.Spec.RevisionHistoryLimit = "", "", 0, nil
		pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{}}}
		for i := range pd.Spec.Ports {
			pd.Spec.Ports[i].Protocol = ""
		}
		objects = append(objects, pd)
	}
	if !slices.ContainsFunc(objects, func(pd *kubeflowv1alpha1.PodDefault) bool { return len(pd.Spec.Ports) > 0 }) {
		t.Fatal("no object has ports, whose protocol has a default")
	}
	return objects
}

// withoutDefaults removes what this release added to the schema of spec.
func withoutDefaults(schema map[string]any) {
	delete(schema, "default")
	delete(schema, "x-kubernetes-list-type")
	delete(schema, "x-kubernetes-list-map-keys")
	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		withoutDefaults(property.(map[string]any))
	}
	if items, ok := schema["items"].(map[string]any); ok {
		withoutDefaults(items)
	}
}
