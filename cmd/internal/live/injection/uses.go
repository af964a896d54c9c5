// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// The kinds of what PodDefaults bring to pods.
const (
	Secret         = "Secret"
	ConfigMap      = "ConfigMap"
	Image          = "Image"
	ServiceAccount = "ServiceAccount"
	Volume         = "Volume"
)

// ReferenceKinds are all of them.
var ReferenceKinds = []string{Secret, ConfigMap, Image, ServiceAccount, Volume}

// A Bringer is a PodDefault or ClusterPodDefault that brings something to pods.
type Bringer struct {
	*manifest.Object
	// Places are the fields with a reference: "spec.volumes[creds].secret.secretName: creds".
	Places []string
	// Pods are the pods that carry its mark and have not ended.
	Pods []Carrier
}

// A Carrier is a pod that an object was applied to.
type Carrier struct {
	Namespace, Name string
	// State says how the object was when it was applied.
	State string
	// Current is set if it is so now.
	Current bool
}

// Bringers finds the objects of a namespace, or of all if it is empty, that bring something of a
// kind whose name contains text, and the pods that carry them. It notes on notes if the user may not
// list ClusterPodDefaults or pods; without the right to list PodDefaults the error is forbidden.
func Bringers(ctx context.Context, c *cluster.Cluster, namespace, kind, text string, notes io.Writer) ([]*Bringer, error) {
	var found []*Bringer
	objects, err := c.List(ctx, kinds[0].Path(namespace))
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrNoPodDefaults
	case err != nil:
		return nil, fmt.Errorf("list PodDefaults: %w", err)
	}
	more, _, err := c.ListIfAllowed(ctx, "ClusterPodDefaults", kinds[1].Path(""), notes)
	if err != nil {
		return nil, err
	}
	for _, o := range append(more, objects...) {
		if places := referencesIn(o.Raw, kind, text); len(places) > 0 {
			found = append(found, &Bringer{Object: o, Places: places})
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	type marking struct {
		*Bringer
		*Default
	}
	marks := map[string][]marking{} // the same name may exist in several namespaces
	for _, b := range found {
		d, err := New(b.Object)
		if err != nil {
			return nil, err
		}
		marks[d.compiled.Mark()] = append(marks[d.compiled.Mark()], marking{b, d})
	}
	pods := workload.Kinds()[0].Path(namespace)
	err = c.EachMetadata(ctx, pods, "status.phase!=Succeeded,status.phase!=Failed", func(pod *metav1.ObjectMeta) {
		for _, mark := range meta.Marks(pod.Annotations) {
			for _, m := range marks[mark.Annotation] {
				if b := m.Bringer; b.Namespace == "" || b.Namespace == pod.Namespace {
					b.Pods = append(b.Pods, Carrier{pod.Namespace, pod.Name, markedState(mark), m.compiled.Wrote(mark)})
				}
			}
		}
	})
	if apierrors.IsForbidden(err) {
		manifest.Note(notes, "note: you may not list pods: which ones have it is not known")
		err = nil
	}
	return found, err
}

// referencesIn returns the places in the spec of a PodDefault that refer to something of a kind
// whose name contains text.
func referencesIn(raw jsontext.Value, kind, text string) []string {
	var body struct {
		Spec any `json:"spec"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return nil
	}
	var places []string
	var walk func(value any, tokens []string)
	walk = func(value any, tokens []string) {
		if name, ok := value.(string); ok && strings.Contains(name, text) && kindAt(tokens) == kind {
			places = append(places, fmt.Sprintf("%s: %s", workload.Place(raw, jsonpatch.Pointer(tokens...)), name))
		}
		switch value := value.(type) {
		case []any:
			for i, element := range value {
				walk(element, append(slices.Clip(tokens), fmt.Sprint(i)))
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				walk(value[name], append(slices.Clip(tokens), name))
			}
		}
	}
	walk(body.Spec, []string{"spec"})
	return places
}

// kindAt returns what the text at a place in the spec of a PodDefault names, or "". The fields are
// those of k8s.io/api/core/v1.
func kindAt(tokens []string) string {
	field, parent, list := tokens[len(tokens)-1], "", ""
	if len(tokens) > 2 {
		parent, list = tokens[len(tokens)-2], tokens[len(tokens)-3]
	}
	switch {
	case slices.Contains([]string{"labels", "annotations", "nodeSelector", "matchLabels", "options"}, parent):
		return "" // the names of members are the author's
	case field == "secretName",
		field == "name" && (strings.HasSuffix(parent, "ecretRef") || parent == "secretKeyRef" || parent == "secret" || list == "imagePullSecrets"):
		return Secret
	case field == "name" && (parent == "configMap" || parent == "configMapRef" || parent == "configMapKeyRef"):
		return ConfigMap
	case field == "image", field == "reference" && parent == "image":
		return Image
	case field == "serviceAccountName":
		return ServiceAccount
	case field == "name" && list == "volumes", field == "claimName":
		return Volume
	}
	return ""
}
