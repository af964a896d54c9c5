// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func podDefaultRefused() Rule {
	return Rule{
		ID: "poddefault-refused", Group: groupPodDefaults, Severities: []Severity{Error}, Source: "incidents",
		What: "Each PodDefault and ClusterPodDefault passes the definition and the checks of this version, as if it were written now. Objects from before, such as those of Kubeflow's webhook, need not.",
		Why:  "Such an object stays stored, and the server creates pods without it, with a warning. The next apply that creates it again or changes the refused field fails with status 422, as in a GitOps tool or when a namespace is restored.",
		Fix:  "Correct the field, or delete the object, before you migrate or upgrade.",
		check: func(c *checker) {
			for _, o := range c.podDefaults {
				if c.options.PodDefault == nil {
					c.skip(o.title(), "this program does not know the fields of PodDefaults: run 'sallyport lint'")
					continue
				}
				for _, err := range c.options.PodDefault(o) {
					text := err.Type.String()
					if err.Field != "" {
						text = err.Field + ": " + text
					}
					if err.Detail != "" {
						text += ": " + err.Detail
					}
					c.object(o, Error, pointerTo(err.Field), "%s", text)
				}
			}
		},
	}
}

// kindsOfPodDefaults are those that need [Options.PodDefault].
var kindsOfPodDefaults = []schema.GroupVersionKind{
	{Group: "kubeflow.org", Version: "v1alpha1", Kind: "PodDefault"},
	{Group: "sallyport.io", Version: "v1alpha1", Kind: "ClusterPodDefault"},
}

func (in *Inventory) addPodDefault(o *Object) error {
	in.podDefaults = append(in.podDefaults, o)
	return nil
}

// pointerTo returns the JSON pointer of a field's path: "spec.env[0].name", "spec.labels[a.b/c]".
func pointerTo(path string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var out strings.Builder
	for path != "" {
		token, after := path, ""
		if inner, indexed := strings.CutPrefix(path, "["); indexed {
			token, after, _ = strings.Cut(inner, "]")
		} else if end := strings.IndexAny(path, ".["); end >= 0 {
			token, after = path[:end], path[end:]
		}
		out.WriteString("/" + escape.Replace(token))
		path = strings.TrimPrefix(after, ".")
	}
	return out.String()
}
