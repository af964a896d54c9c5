// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/config/crd"
)

func TestEachDefinitionIsStructuralAndSmall(t *testing.T) {
	for _, definition := range all(t) {
		t.Run(definition.Name, func(t *testing.T) {
			compact, err := json.Marshal(definition)
			if err != nil {
				t.Fatal(err)
			}
			if len(compact) >= 200_000 {
				t.Errorf("%d bytes as compact JSON; client-side apply needs less than 200,000", len(compact))
			}
			for _, version := range definition.Spec.Versions {
				if errs := structuralschema.ValidateStructural(nil, structural(t, version)); len(errs) > 0 {
					t.Errorf("%s: %v", version.Name, errs.ToAggregate())
				}
			}
			if definition.Spec.PreserveUnknownFields {
				t.Error("unknown fields are preserved, so misspelt fields would be accepted")
			}
		})
	}
}

func TestPodDefaultKeepsTheContractOfKubeflow(t *testing.T) {
	definition := podDefault(t)
	names := apiextensionsv1.CustomResourceDefinitionNames{Kind: "PodDefault", ListKind: "PodDefaultList", Plural: "poddefaults", Singular: "poddefault", ShortNames: []string{"pd"}, Categories: []string{"sallyport"}}
	if diff := cmp.Diff(names, definition.Spec.Names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if definition.Name != "poddefaults.kubeflow.org" || definition.Spec.Group != "kubeflow.org" || definition.Spec.Scope != apiextensionsv1.NamespaceScoped {
		t.Errorf("got %s of group %s, scope %s", definition.Name, definition.Spec.Group, definition.Spec.Scope)
	}
	if len(definition.Spec.Versions) != 1 {
		t.Fatalf("%d versions, want v1alpha1 alone", len(definition.Spec.Versions))
	}
	version := definition.Spec.Versions[0]
	if version.Name != "v1alpha1" || !version.Served || !version.Storage {
		t.Errorf("version %s, served %t, storage %t", version.Name, version.Served, version.Storage)
	}
	if version.Subresources == nil || version.Subresources.Status == nil {
		t.Error("no status subresource")
	}
	root := version.Schema.OpenAPIV3Schema
	if len(root.Required) > 0 {
		t.Errorf("required at the top: %v; objects without spec exist", root.Required)
	}
	spec := root.Properties["spec"]
	if diff := cmp.Diff([]string{"selector"}, spec.Required); diff != "" {
		t.Errorf("required in spec (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"annotations": "object", "args": "array", "automountServiceAccountToken": "boolean", "command": "array",
		"desc": "string", "env": "array", "envFrom": "array", "imagePullSecrets": "array", "initContainers": "array",
		"labels": "object", "selector": "object", "serviceAccountName": "string", "sidecars": "array",
		"tolerations": "array", "volumeMounts": "array", "volumes": "array",

		// Beyond Kubeflow's, all optional.
		"activeDeadlineSeconds": "integer", "affinity": "object", "conflictPolicy": "string", "containerSecurityContext": "object", "containerSelector": "object",
		"envFromSecretSelector": "object", "secretsMountPath": "string", "volumesFromSecretSelector": "object",
		"dnsConfig": "object", "dnsPolicy": "string", "enableServiceLinks": "boolean", "exclusiveGroup": "string", "hostAliases": "array",
		"hostUsers": "boolean", "readinessGates": "array", "resourceClaims": "array", "schedulerName": "string", "schedulingGates": "array",
		"revisionHistoryLimit": "integer", "rollout": "object", "shareProcessNamespace": "boolean", "terminationMessagePolicy": "string", "lifecycle": "object", "mode": "string", "nodeSelector": "object",
		"podSecurityContext": "object", "ports": "array", "positions": "array", "priority": "integer",
		"priorityClassName": "string", "resources": "object", "runtimeClassName": "string", "substitute": "boolean",
		"terminationGracePeriodSeconds": "integer", "topologySpreadConstraints": "array", "volumeDevices": "array",
	}
	got := map[string]string{}
	for name, property := range spec.Properties {
		got[name] = property.Type
		if property.Description == "" {
			t.Errorf("spec.%s has no description for kubectl explain", name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of spec (-want +got):\n%s", diff)
	}
}

// fieldsOfKubeflow are the fields of spec that Kubeflow's definition has.
var fieldsOfKubeflow = []string{
	"annotations", "args", "automountServiceAccountToken", "command", "desc", "env", "envFrom", "imagePullSecrets", "initContainers",
	"labels", "selector", "serviceAccountName", "sidecars", "tolerations", "volumeMounts", "volumes",
}

// Two owners of one object own elements of a list, by server-side apply, unless the list is Kubeflow's.
func TestListsOfOursHaveATypeAndKubeflowsTheTypesOfKubeflow(t *testing.T) {
	var typed, defaulted []string
	maps := map[string][]string{}
	for _, definition := range all(t) {
		if strings.Contains(definition.Name, "revision") {
			continue
		}
		root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		walk("", root, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			field, _, _ := strings.Cut(strings.TrimPrefix(path, ".spec."), ".")
			field, _, _ = strings.Cut(field, "[")
			kubeflow := definition.Spec.Group == "kubeflow.org" && strings.HasPrefix(path, ".spec.") && slices.Contains(fieldsOfKubeflow, field)
			switch {
			case kubeflow && schema.XListType != nil:
				typed = append(typed, path+" "+*schema.XListType)
			case !kubeflow && schema.Type == "array" && schema.XListType == nil && !strings.HasSuffix(path, ".metadata.finalizers"): // Kubernetes' own type has none
				t.Errorf("%s: %s has no list type", definition.Name, path)
			}
			if schema.Type == "array" && schema.XListType != nil && *schema.XListType != "atomic" && strings.Count(path, ".")+strings.Count(path, "[") == 2 {
				maps[definition.Spec.Names.Kind] = append(maps[definition.Spec.Names.Kind], path+" "+strings.Join(schema.XListMapKeys, ","))
			}
			if schema.Default != nil {
				defaulted = append(defaulted, definition.Spec.Names.Kind+path+" "+string(schema.Default.Raw))
			}
		})
	}
	slices.Sort(typed)
	slices.Sort(defaulted)
	want := []string{
		".spec.initContainers[].ports map", ".spec.initContainers[].resizePolicy atomic", ".spec.initContainers[].resources.claims map",
		".spec.sidecars[].ports map", ".spec.sidecars[].resizePolicy atomic", ".spec.sidecars[].resources.claims map",
	}
	if diff := cmp.Diff(want, typed); diff != "" {
		t.Errorf("lists of Kubeflow's fields with a type (-want +got):\n%s", diff)
	}
	own := []string{
		".spec.hostAliases ip", ".spec.ports containerPort,protocol", ".spec.positions name", ".spec.readinessGates conditionType",
		".spec.resourceClaims name", ".spec.schedulingGates name", ".spec.topologySpreadConstraints topologyKey,whenUnsatisfiable",
		".spec.volumeDevices devicePath", ".status.conditions type",
	}
	ofCluster := append([]string{
		".spec.env name", ".spec.imagePullSecrets name", ".spec.initContainers name", ".spec.sidecars name", ".spec.volumeMounts mountPath", ".spec.volumes name",
	}, own...)
	slices.Sort(ofCluster)
	slices.Sort(own)
	for kind, want := range map[string][]string{"PodDefault": own, "ClusterPodDefault": ofCluster} {
		slices.Sort(maps[kind])
		if diff := cmp.Diff(want, maps[kind]); diff != "" {
			t.Errorf("%s: lists with keys (-want +got):\n%s", kind, diff)
		}
	}
	wantDefaults := []string{`ClusterPodDefault.spec.imagePullSecrets[].name ""`, `Exemption.status {"observedGeneration":-1}`}
	for _, kind := range []string{"PodDefault", "ClusterPodDefault"} {
		wantDefaults = append(wantDefaults, kind+`.status {"observedGeneration":-1}`) // kstatus: in progress
		for _, each := range []string{
			`conflictPolicy "Kubeflow"`, `initContainers[].ports[].protocol "TCP"`, `mode "Enforce"`, `ports[].protocol "TCP"`, `priority 0`, `revisionHistoryLimit 5`,
			`rollout.by "Workload"`, `rollout.maxFailedPercent 10`, `rollout.steps[].percent 100`, `sidecars[].ports[].protocol "TCP"`,
		} {
			wantDefaults = append(wantDefaults, kind+".spec."+each)
		}
	}
	slices.Sort(wantDefaults)
	if diff := cmp.Diff(wantDefaults, defaulted); diff != "" {
		t.Errorf("fields with a default (-want +got):\n%s", diff)
	}
}

// The cost of a rule, and what a request may hold, are limited by the lengths of lists and maps.
func TestEachListAndMapHasALimit(t *testing.T) {
	for _, definition := range all(t) {
		walk("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if schema.Type == "array" && schema.MaxItems == nil || schema.AdditionalProperties != nil && schema.MaxProperties == nil {
				t.Errorf("%s: %s has no limit", definition.Name, path)
			}
		})
	}
}

// A field that the schema does not know is dropped by the API server without a
// word, so the schema has to know each field that the types have.
func TestPodDefaultSchemaPrunesNoFieldOfTheTypes(t *testing.T) {
	schema := structural(t, podDefault(t).Spec.Versions[0])
	seen := map[string]bool{}
	filled := &v1alpha1.PodDefault{}
	filler().Fill(&filled.Spec)
	filler().Fill(&filled.Status)
	data, err := json.Marshal(filled)
	if err != nil {
		t.Fatal(err)
	}
	var before, after map[string]any
	if err := json.Unmarshal(data, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &after); err != nil {
		t.Fatal(err)
	}
	pruning.Prune(after, schema, true)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("pruning removes fields (-before +after):\n%s", diff)
	}
	leaves("", before, seen)
	// The newest fields prove that the filling reaches everything.
	for _, path := range []string{
		".spec.env[].valueFrom.fileKeyRef.volumeName",
		".spec.volumes[].image.reference",
		".spec.volumes[].projected.sources[].podCertificate.signerName",
		".spec.volumes[].projected.sources[].clusterTrustBundle.path",
		".spec.volumes[].ephemeral.volumeClaimTemplate.metadata.labels.x",
		".spec.volumeMounts[].recursiveReadOnly",
		".spec.sidecars[].lifecycle.preStop.sleep.seconds",
		".spec.sidecars[].restartPolicyRules[].exitCodes.operator",
		".spec.initContainers[].securityContext.appArmorProfile.type",
	} {
		if !seen[path] {
			t.Errorf("%s was never filled", path)
		}
	}
}

// The objects that tests take for valid are, and set every field that there is.
func TestTheSchemaTakesEveryField(t *testing.T) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(podDefault(t).Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	filled := &v1alpha1.PodDefault{}
	filler().Fill(&filled.Spec)
	want, seen := map[string]bool{}, map[string]bool{}
	leaves("", asMap(t, filled.Spec), want)
	for _, pd := range valid(t) {
		if errs := validation.ValidateCustomResource(nil, asMap(t, pd), validator); len(errs) > 0 {
			t.Errorf("%s: %v", pd.Name, errs.ToAggregate())
		}
		leaves("", asMap(t, pd.Spec), seen)
	}
	// What is of one type is looked at once, and keys of maps are their authors'.
	alike := strings.NewReplacer(".sidecars[]", "", ".initContainers[]", "", ".containerSecurityContext", ".securityContext", "podAntiAffinity", "podAffinity",
		"livenessProbe", "probe", "readinessProbe", "probe", "startupProbe", "probe", "postStart", "hook", "preStop", "hook")
	keys := regexp.MustCompile(`\.(labels|annotations|matchLabels|nodeSelector|options|volumeAttributes|userAnnotations|requests|limits)\.[^\[]+$`)
	plain := func(path string) string { return keys.ReplaceAllString(alike.Replace(path), ".$1") }
	known := map[string]bool{
		// Only some pods may have these.
		".lifecycle.stopSignal": true, ".resources.claims[].name": true, ".resources.claims[].request": true,
	}
	for path := range seen {
		known[plain(path)] = true
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if !known[plain(path)] {
			t.Errorf("cmd/internal/poddefault/testdata/valid.yaml sets no %s", path)
		}
	}
}

// valid are the objects that between them set every field.
func valid(t *testing.T) (out []*v1alpha1.PodDefault) {
	t.Helper()
	data, err := os.ReadFile("../../cmd/internal/poddefault/testdata/valid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		pd := &v1alpha1.PodDefault{}
		if err := yaml.UnmarshalStrict(document, pd); err != nil {
			t.Fatal(err)
		}
		pd.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PodDefaultKind}
		out = append(out, pd)
	}
	return out
}

func TestAllReturnsFreshCopies(t *testing.T) {
	podDefault(t).Spec.Group = "changed"
	if group := podDefault(t).Spec.Group; group != "kubeflow.org" {
		t.Errorf("group is %s after another caller changed its copy", group)
	}
}

func all(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definitions, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	return definitions
}

func podDefault(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	for _, definition := range all(t) {
		if definition.Name == "poddefaults.kubeflow.org" {
			return definition
		}
	}
	t.Fatal("no definition of PodDefault")
	return nil
}

func structural(t *testing.T, version apiextensionsv1.CustomResourceDefinitionVersion) *structuralschema.Structural {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	schema, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// filler fills every field, with one element in each list and map.
func filler() *randfill.Filler {
	return randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) { *q = resource.MustParse("1") },
		func(v *intstr.IntOrString, _ randfill.Continue) { *v = intstr.FromInt32(1) },
		func(v *runtime.RawExtension, _ randfill.Continue) { v.Raw = []byte(`{"selector":{}}`) },
		// Of the metadata of a volume claim template the API server takes these two.
		func(v *metav1.ObjectMeta, _ randfill.Continue) {
			*v = metav1.ObjectMeta{Labels: map[string]string{"x": "x"}, Annotations: map[string]string{"x": "x"}}
		},
		func(v *metav1.Time, _ randfill.Continue) { *v = metav1.Unix(1, 0) },
		func(v *corev1.ResourceList, _ randfill.Continue) {
			*v = corev1.ResourceList{"cpu": resource.MustParse("1")}
		},
		func(v *v1alpha1.ConflictPolicy, _ randfill.Continue) { *v = v1alpha1.ConflictSkip },
		func(v *v1alpha1.Mode, _ randfill.Continue) { *v = v1alpha1.ModeAudit },
		func(v *v1alpha1.ContainerType, _ randfill.Continue) { *v = v1alpha1.TypeInjected },
		func(v *v1alpha1.ContainerPlace, _ randfill.Continue) { *v = v1alpha1.PlaceAfter },
		func(v *string, _ randfill.Continue) { *v = "x" },
		func(v *bool, _ randfill.Continue) { *v = true },
		func(v *int32, _ randfill.Continue) { *v = 1 },
		func(v *int64, _ randfill.Continue) { *v = 1 },
	)
}

func leaves(path string, value any, seen map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			leaves(path+"."+key, v[key], seen)
		}
	case []any:
		for _, element := range v {
			leaves(path+"[]", element, seen)
		}
	default:
		seen[path] = true
	}
}

func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for name, property := range schema.Properties {
		walk(path+"."+name, &property, visit)
	}
	if schema.Items != nil {
		walk(path+"[]", schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(path+"{}", schema.AdditionalProperties.Schema, visit)
	}
}

func TestClusterPodDefaultHasTheSpecOfAPodDefaultAndMore(t *testing.T) {
	for _, definition := range all(t) {
		if definition.Name != "clusterpoddefaults.sallyport.io" {
			continue
		}
		if definition.Spec.Scope != apiextensionsv1.ClusterScoped || definition.Spec.Versions[0].Subresources.Status == nil {
			t.Errorf("scope %s, subresources %v", definition.Spec.Scope, definition.Spec.Versions[0].Subresources)
		}
		got := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
		for _, own := range []string{"namespaceSelector", "allowExclude"} {
			if got[own].Description == "" {
				t.Errorf("no described field spec.%s", own)
			}
			delete(got, own)
		}
		want := podDefault(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
		if diff := cmp.Diff(unmarked(t, want), unmarked(t, got)); diff != "" {
			t.Errorf("the other fields of spec (-PodDefault +ClusterPodDefault):\n%s", diff)
		}
		return
	}
	t.Fatal("no definition of ClusterPodDefault")
}

// unmarked returns properties as JSON without the marks of what Kubeflow does not have, and without
// types of lists.
func unmarked(t *testing.T, properties map[string]apiextensionsv1.JSONSchemaProps) map[string]any {
	t.Helper()
	data, err := json.Marshal(properties)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`( |\\n)\(\+sallyport\)`).ReplaceAll(data, nil)
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	untype(out)
	return out
}

// untype removes types of lists, and defaults of their keys.
func untype(value any) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			untype(each)
		}
	case map[string]any:
		for _, each := range []string{"x-kubernetes-list-type", "x-kubernetes-list-map-keys"} {
			delete(v, each)
		}
		if v["default"] == "" {
			delete(v, "default")
		}
		for _, each := range v {
			untype(each)
		}
	}
}

// The Go types and the schema cannot drift apart without this failing: each
// JSON name of PodDefaultSpec is a property, and the other way round.
func TestPodDefaultSpecHasTheFieldsOfTheSchema(t *testing.T) {
	properties := podDefault(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	spec := reflect.TypeFor[v1alpha1.PodDefaultSpec]()
	if spec.NumField() != len(properties) {
		t.Errorf("%d fields, %d properties", spec.NumField(), len(properties))
	}
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		if _, ok := properties[name]; !ok {
			t.Errorf("field %s has no property %q", spec.Field(i).Name, name)
		}
	}
}
