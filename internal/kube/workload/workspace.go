// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// workspaceVersion is the API version of Kubeflow Notebooks 2.0.
const workspaceVersion = "kubeflow.org/v1beta1"

// A workspace is the spec of a Workspace. Its pod comes from its WorkspaceKind, of which it
// selects options.
type workspace struct {
	Kind        string `json:"kind"`
	PodTemplate struct {
		PodMetadata podMetadata `json:"podMetadata"`
		Volumes     struct {
			Home string `json:"home"`
			Data []struct {
				PVCName   string `json:"pvcName"`
				MountPath string `json:"mountPath"`
				ReadOnly  bool   `json:"readOnly"`
			} `json:"data"`
			Secrets []struct {
				SecretName  string `json:"secretName"`
				MountPath   string `json:"mountPath"`
				DefaultMode *int32 `json:"defaultMode"`
			} `json:"secrets"`
		} `json:"volumes"`
		Options struct {
			ImageConfig string `json:"imageConfig"`
			PodConfig   string `json:"podConfig"`
		} `json:"options"`
	} `json:"podTemplate"`
}

type podMetadata struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// workspaceKind is the pod template of a WorkspaceKind. What goes into the pod as it is stays raw.
type workspaceKind struct {
	PodMetadata    podMetadata `json:"podMetadata"`
	ServiceAccount struct {
		Name string `json:"name"`
	} `json:"serviceAccount"`
	Probes       map[string]jsontext.Value `json:"probes"`
	VolumeMounts struct {
		Home string `json:"home"`
	} `json:"volumeMounts"`
	ExtraEnv                 []jsontext.Value `json:"extraEnv"`
	ExtraVolumeMounts        []jsontext.Value `json:"extraVolumeMounts"`
	ExtraVolumes             []jsontext.Value `json:"extraVolumes"`
	SecurityContext          jsontext.Value   `json:"securityContext"`
	ContainerSecurityContext jsontext.Value   `json:"containerSecurityContext"`
	Options                  struct {
		ImageConfig optionsOf[imageConfig] `json:"imageConfig"`
		PodConfig   optionsOf[podConfig]   `json:"podConfig"`
	} `json:"options"`
}

type optionsOf[T any] struct {
	Spawner struct {
		Default string `json:"default"`
	} `json:"spawner"`
	Values []struct {
		ID   string `json:"id"`
		Spec T      `json:"spec"`
	} `json:"values"`
}

type imageConfig struct {
	Image           string `json:"image"`
	ImagePullPolicy string `json:"imagePullPolicy"`
	Ports           []struct {
		ID   string `json:"id"`
		Port int32  `json:"port"`
	} `json:"ports"`
}

type podConfig struct {
	Affinity     jsontext.Value `json:"affinity"`
	NodeSelector jsontext.Value `json:"nodeSelector"`
	Tolerations  jsontext.Value `json:"tolerations"`
	Resources    jsontext.Value `json:"resources"`
}

// option returns the selected option. A redirect takes effect at a restart, so the option that
// is named is the running one.
func (o *optionsOf[T]) option(id string) (*T, error) {
	var known []string
	for i := range o.Values {
		if o.Values[i].ID == id {
			return &o.Values[i].Spec, nil
		}
		known = append(known, o.Values[i].ID)
	}
	return nil, fmt.Errorf("the option %q is not one of %s", id, strings.Join(known, ", "))
}

// podsOfWorkspace returns the pod of a Workspace or, for a WorkspaceKind, that of a Workspace
// with the default options.
func podsOfWorkspace(o *manifest.Object, namespace string, find Finder) ([]*Pod, error) {
	var spec workspace
	kindObject, name := o, o.Name
	if o.Kind == "Workspace" {
		if err := decodeField(o, &spec, "spec"); err != nil {
			return nil, err
		}
		found, err := find(workspaceVersion, "WorkspaceKind", "", spec.Kind)
		if err == nil && found == nil {
			err = o.ErrorAt("/spec/kind", fmt.Sprintf(
				"%s: its pod is described by the WorkspaceKind %s, which was not given: add the output of 'kubectl get workspacekind.kubeflow.org %s -o yaml'", o.Title(), spec.Kind, spec.Kind))
		}
		if err != nil {
			return nil, err
		}
		kindObject = found
	}
	var kind workspaceKind
	if err := decodeField(kindObject, &kind, "spec", "podTemplate"); err != nil {
		return nil, err
	}
	options := &spec.PodTemplate.Options
	if o.Kind != "Workspace" {
		name = standInName
		options.ImageConfig, options.PodConfig = kind.Options.ImageConfig.Spawner.Default, kind.Options.PodConfig.Spawner.Default
	}
	image, errImage := kind.Options.ImageConfig.option(options.ImageConfig)
	pods, errPods := kind.Options.PodConfig.option(options.PodConfig)
	if err := cmp.Or(errImage, errPods); err != nil {
		return nil, o.ErrorAt("/spec/podTemplate/options", fmt.Sprintf("%s: it makes no pods: %s", o.Title(), err))
	}
	raw, err := json.Marshal(spec.template(&kind, image, pods, cmp.Or(o.Namespace, namespace), cmp.Or(name, standInName)), json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	pod, err := foundTemplate{path: []string{"spec", "podTemplate"}, raw: raw}.pod(o, kindObject, namespace, finishWorkspace, false)
	if err != nil {
		return nil, err
	}
	return []*Pod{pod}, nil
}

// template returns the pod template of the controller's StatefulSet.
func (w *workspace) template(kind *workspaceKind, image *imageConfig, config *podConfig, namespace, name string) map[string]any {
	container := map[string]any{
		"name": "main", "image": image.Image, "imagePullPolicy": cmp.Or(image.ImagePullPolicy, string(corev1.PullIfNotPresent)),
	}
	paths, ports := map[string]string{}, []any{}
	for _, port := range image.Ports {
		ports = append(ports, map[string]any{"name": fmt.Sprintf("http-%d", port.Port), "containerPort": port.Port, "protocol": "TCP"})
		paths[port.ID] = fmt.Sprintf("/workspace/connect/%s/%s/%s/", namespace, name, port.ID)
	}
	env := make([]jsontext.Value, len(kind.ExtraEnv))
	for i := range env {
		env[i] = withPaths(kind.ExtraEnv[i], paths)
	}
	volumes, mounts := w.volumes(kind)
	maps.Copy(container, given(kind.Probes))
	maps.Copy(container, given(map[string]jsontext.Value{"securityContext": kind.ContainerSecurityContext, "resources": config.Resources}))
	if len(ports) > 0 {
		container["ports"] = ports
	}
	if len(env) > 0 {
		container["env"] = env
	}
	if len(mounts) > 0 {
		container["volumeMounts"] = mounts
	}
	spec := given(map[string]jsontext.Value{
		"affinity": config.Affinity, "nodeSelector": config.NodeSelector, "tolerations": config.Tolerations, "securityContext": kind.SecurityContext,
	})
	spec["containers"] = []any{container}
	spec["serviceAccountName"] = cmp.Or(kind.ServiceAccount.Name, "ws-"+name)
	if len(volumes) > 0 {
		spec["volumes"] = volumes
	}
	merge := func(first, second map[string]string) map[string]string {
		out := map[string]string{}
		maps.Copy(out, first)
		maps.Copy(out, second)
		return out
	}
	meta := w.PodTemplate.PodMetadata
	return map[string]any{
		"metadata": map[string]any{"labels": merge(kind.PodMetadata.Labels, meta.Labels), "annotations": merge(kind.PodMetadata.Annotations, meta.Annotations)},
		"spec":     spec,
	}
}

// given returns the values that are set.
func given(values map[string]jsontext.Value) map[string]any {
	out := map[string]any{}
	for name, value := range values {
		if len(value) > 0 && value.Kind() != 'n' {
			out[name] = value
		}
	}
	return out
}

// volumes returns the volumes and mounts in the controller's order. Of those with one path or
// name, the first wins.
func (w *workspace) volumes(kind *workspaceKind) (volumes, mounts []any) {
	paths, names := map[string]bool{}, map[string]bool{}
	add := func(name, path string, readOnly bool, source map[string]any) {
		if paths[path] {
			return
		}
		paths[path], names[name] = true, true
		source["name"] = name
		mount := map[string]any{"name": name, "mountPath": path}
		if readOnly {
			mount["readOnly"] = true
		}
		volumes, mounts = append(volumes, source), append(mounts, mount)
	}
	claim := func(name string, readOnly bool) map[string]any {
		of := map[string]any{"claimName": name}
		if readOnly {
			of["readOnly"] = true
		}
		return map[string]any{"persistentVolumeClaim": of}
	}
	given := &w.PodTemplate.Volumes
	if given.Home != "" {
		add("home-volume", kind.VolumeMounts.Home, false, claim(given.Home, false))
	}
	for i, data := range given.Data {
		add(fmt.Sprintf("data-volume-%d", i), data.MountPath, data.ReadOnly, claim(data.PVCName, data.ReadOnly))
	}
	for i, secret := range given.Secrets {
		of := map[string]any{"secretName": secret.SecretName}
		if secret.DefaultMode != nil {
			of["defaultMode"] = *secret.DefaultMode
		}
		add(fmt.Sprintf("secret-volume-%d", i), secret.MountPath, false, map[string]any{"secret": of})
	}
	var field struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
	}
	for _, raw := range kind.ExtraVolumes {
		if field.Name = ""; json.Unmarshal(raw, &field) == nil && !names[field.Name] {
			names[field.Name] = true
			volumes = append(volumes, raw)
		}
	}
	for _, raw := range kind.ExtraVolumeMounts {
		if field.MountPath = ""; json.Unmarshal(raw, &field) == nil && names[field.Name] && !paths[field.MountPath] {
			paths[field.MountPath] = true
			mounts = append(mounts, raw)
		}
	}
	return volumes, mounts
}

// pathPrefix is the one function that values of variables can call, in Go's template syntax.
var pathPrefix = regexp.MustCompile("{{-? *httpPathPrefix *[\"`]([^\"`]*)[\"`] *-?}}")

// withPaths puts the paths of ports into a variable's value.
func withPaths(variable jsontext.Value, paths map[string]string) jsontext.Value {
	var fields map[string]any
	if json.Unmarshal(variable, &fields) != nil {
		return variable
	}
	value, ok := fields["value"].(string)
	if !ok || !pathPrefix.MatchString(value) {
		return variable
	}
	fields["value"] = pathPrefix.ReplaceAllStringFunc(value, func(call string) string { return paths[pathPrefix.FindStringSubmatch(call)[1]] })
	raw, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		return variable
	}
	return raw
}

// finishWorkspace makes the pod of the controller's StatefulSet, which has a generated name.
func finishWorkspace(p *draft) error {
	name := p.ownerName
	if p.owner.Kind != "Workspace" {
		name = standInName
	}
	const maxName = 52 - 6 // of a StatefulSet, without the random suffix and its dash
	p.ownerName = strings.TrimSuffix(("ws-" + name)[:min(len("ws-"+name), maxName-1)], "-") + "-" + standInName
	p.label("notebooks.kubeflow.org/workspace-name", name)
	p.label("statefulset", name)
	p.becomeOrdinal(0)
	p.controlledBy(appsv1.SchemeGroupVersion.String(), "StatefulSet", p.ownerName)
	return p.setField("hostname", p.name)
}

// isWorkspace reports whether the object is a Workspace or a WorkspaceKind.
func isWorkspace(o *manifest.Object) bool {
	return strings.HasPrefix(o.APIVersion, "kubeflow.org/") && (o.Kind == "Workspace" || o.Kind == "WorkspaceKind")
}
