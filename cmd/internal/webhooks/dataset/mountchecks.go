// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/scripts"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// checkMount makes the fuse wait until it has mounted.
func (t *template) checkMount() {
	if t.mountPath == "" {
		return
	}
	t.volumes = append(t.volumes, *scripts.Volume())
	t.container.VolumeMounts = append(t.container.VolumeMounts, scripts.Mount(scripts.Fuse))
	if t.container.Lifecycle == nil {
		t.container.Lifecycle = &corev1.Lifecycle{}
	}
	t.container.Lifecycle.PostStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "/" + scripts.Fuse, t.mountPath, t.kind, t.subPath}}}
}

// mountChecks gives the script to containers that mount one of the Datasets, and runs
// it in those that a label of the pod selects. The fuse of Vineyard puts sockets into a
// folder and mounts nothing: containers would wait in vain, and be killed.
func (d *draft) mountChecks(templates []*template) {
	const why = fuseSidecarName + ": waits until datasets are mounted"
	kinds := map[*Mounted]string{}
	var of []*Mounted
	for _, t := range templates {
		if t.mounted.Type != "vineyard" {
			of, kinds[t.mounted] = append(of, t.mounted), t.kind
		}
	}
	run := is(d.pod.Labels, appPostStartLabel)
	added := false
	for _, list := range []struct {
		containers []draftContainer
		run        bool // an init container has no postStart
	}{{d.containers, run}, {d.init, false}} {
		for i := range list.containers {
			c := &list.containers[i]
			var folders, kindsOf []string
			wait := func(volume, path string) {
				if m := d.behind(volume, of); m != nil {
					folders, kindsOf = append(folders, path), append(kindsOf, kinds[m])
				}
			}
			if c.container != nil {
				for j := range c.container.mounts {
					wait(c.container.mounts[j].volume, c.container.mounts[j].path)
				}
			} else {
				for j := range c.made.VolumeMounts {
					wait(c.made.VolumeMounts[j].Name, c.made.VolumeMounts[j].MountPath)
				}
			}
			if len(folders) == 0 {
				continue
			}
			added = true
			d.mount(c, scripts.Mount(scripts.App), why)
			if list.run && c.container != nil && c.postStart == nil && !hasPostStart(c.lifecycle) {
				c.postStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "/" + scripts.App, scripts.Escapes.Replace(strings.Join(folders, ":")), strings.Join(kindsOf, ":")}}}
				c.whyMore = why
				d.changes++
			}
		}
	}
	if added {
		d.addVolume(scripts.Volume(), why)
	}
}

// hasPostStart reports whether a container's lifecycle has a postStart.
func hasPostStart(lifecycle jsontext.Value) bool {
	found, _ := rawjson.Lookup(lifecycle, "postStart")
	return len(found) > 0 && found.Kind() != 'n'
}
