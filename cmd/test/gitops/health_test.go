// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"slices"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// A state is one of testdata/ready.yaml of cmd/internal/poddefault/status, or of testdata/states.yaml
// of exemptions, which the tests there generate.
type state struct {
	State   string
	KStatus string
	ArgoCD  string
	Object  map[string]any
}

func states(t *testing.T) (out []state) {
	t.Helper()
	out = slices.Concat(statesIn(t, "status/testdata/ready.yaml"), statesIn(t, "exemptions/testdata/states.yaml"))
	if len(out) < 21 {
		t.Fatalf("%d states", len(out))
	}
	return out
}

func statesIn(t *testing.T, file string) (out []state) {
	t.Helper()
	data, err := os.ReadFile("../../internal/poddefault/" + file)
	if err == nil {
		data, err = yaml.YAMLToJSON(data)
	}
	var list []any
	if err == nil {
		err = utiljson.Unmarshal(data, &list) // integers stay integers, as from the API server
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range list {
		m := each.(map[string]any)
		out = append(out, state{m["state"].(string), m["kstatus"].(string), m["argoCD"].(string), m["object"].(map[string]any)})
	}
	return out
}

// PodDefaults and ClusterPodDefaults have the same status.
func kinds(object map[string]any, each func(*unstructured.Unstructured)) {
	if object["kind"] == "Exemption" {
		each(&unstructured.Unstructured{Object: object})
		return
	}
	for _, kind := range [][2]string{{"kubeflow.org/v1alpha1", "PodDefault"}, {"sallyport.io/v1alpha1", "ClusterPodDefault"}} {
		u := (&unstructured.Unstructured{Object: object}).DeepCopy()
		u.SetAPIVersion(kind[0])
		u.SetKind(kind[1])
		each(u)
	}
}

func TestKStatusOfEachState(t *testing.T) {
	for _, s := range states(t) {
		kinds(s.Object, func(u *unstructured.Unstructured) {
			result, err := status.Compute(u)
			if err != nil || result.Status.String() != s.KStatus {
				t.Errorf("%s %s: kstatus computes %+v, %v; want %s", u.GetKind(), s.State, result, err, s.KStatus)
			}
		})
	}
}

func TestArgoCDsHealthOfEachState(t *testing.T) {
	script, err := os.ReadFile("../../../docs/gitops/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states(t) {
		kinds(s.Object, func(u *unstructured.Unstructured) {
			state := lua.NewState()
			defer state.Close()
			state.SetGlobal("obj", toLua(state, u.Object))
			if err := state.DoString(string(script)); err != nil {
				t.Fatalf("%s: %v", s.State, err)
			}
			result, ok := state.Get(-1).(*lua.LTable)
			if !ok {
				t.Fatalf("%s: the script returns %s", s.State, state.Get(-1))
			}
			if got := result.RawGetString("status").String(); got != s.ArgoCD {
				t.Errorf("%s %s: the script says %s, %s; want %s", u.GetKind(), s.State, got, result.RawGetString("message"), s.ArgoCD)
			}
		})
	}
}

// The ConfigMap for Argo CD has the script for each kind.
func TestTheConfigMapHasTheScript(t *testing.T) {
	script, err := os.ReadFile("../../../docs/gitops/health.lua")
	var configMap struct{ Data map[string]string }
	if err == nil {
		var data []byte
		if data, err = os.ReadFile("../../../docs/gitops/argocd-cm.yaml"); err == nil {
			err = yaml.Unmarshal(data, &configMap)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"kubeflow.org_PodDefault", "sallyport.io_ClusterPodDefault", "sallyport.io_Exemption"} {
		if configMap.Data["resource.customizations.health."+kind] != string(script) {
			t.Errorf("docs/gitops/argocd-cm.yaml has another script for %s", kind)
		}
	}
}

// toLua converts an object as Argo CD does: numbers are floats, and null is nil.
func toLua(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, each := range v {
			table.RawSetString(key, toLua(state, each))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, each := range v {
			table.Append(toLua(state, each))
		}
		return table
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}
