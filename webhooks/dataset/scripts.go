// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Scripts that containers run to wait for mounts. They are in a ConfigMap in each
// namespace with a Dataset, whose name has a hash of their content: one that is there is
// the right one, and pods of an earlier version keep theirs.
const (
	scriptsVolume   = "check-fluid-mount-ready"
	appScript       = "check-fluid-mount-ready.sh"
	fuseScript      = "check-mount.sh"
	scriptsTriesMax = "30"
)

// appScriptText waits until each of the paths of its first argument, separated by colons,
// is a mount of something.
const appScriptText = `#!/bin/sh
# Waits until the folders "a:b:c" are mounted.
rest="$1:"
while [ -n "$rest" ]; do
  folder="${rest%%:*}"
  rest="${rest#*:}"
  tries=0
  until grep -F " $folder " /proc/self/mountinfo | grep -q -F fuse; do
    tries=$((tries + 1))
    if [ "$tries" -ge ` + scriptsTriesMax + ` ]; then
      echo "$folder is not mounted"
      exit 1
    fi
    sleep 1
  done
done
`

// fuseScriptText waits until something is mounted below the path of its first argument,
// and looks for the folder of the second there.
const fuseScriptText = `#!/bin/sh
# Waits until something is mounted below the folder "$1", with "$2" in it.
tries=0
until grep -F "$1" /proc/self/mountinfo | grep -q -F fuse; do
  tries=$((tries + 1))
  if [ "$tries" -ge ` + scriptsTriesMax + ` ]; then
    echo "nothing is mounted below $1"
    exit 1
  fi
  sleep 1
done
for folder in "$1"/*; do
  if [ -e "$folder/$2" ]; then
    exit 0
  fi
done
echo "$2 is not there"
exit 2
`

// ScriptsName is the name of the ConfigMap.
func ScriptsName() string {
	sum := sha256.Sum256([]byte(appScriptText + "\x00" + fuseScriptText))
	return scriptsVolume + "-" + hex.EncodeToString(sum[:5])
}

// scripts is the ConfigMap for a namespace.
func scripts(namespace string) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: ScriptsName(), Labels: map[string]string{"app.kubernetes.io/managed-by": "sallyport"},
		},
		Immutable: &immutable,
		Data:      map[string]string{appScript: appScriptText, fuseScript: fuseScriptText},
	}
}

func scriptsVolumeSource() *corev1.Volume {
	mode := int32(0o755)
	return &corev1.Volume{Name: scriptsVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: ScriptsName()}, DefaultMode: &mode,
	}}}
}

func scriptMount(name string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: scriptsVolume, MountPath: "/" + name, SubPath: name, ReadOnly: true}
}

// checkMount makes the fuse wait until it has mounted.
func (t *template) checkMount() {
	at := ""
	for _, mount := range t.container.VolumeMounts {
		if strings.HasSuffix(mount.Name, "-fuse-mount") {
			at = mount.MountPath
		}
	}
	if at == "" {
		return
	}
	t.volumes = append(t.volumes, *scriptsVolumeSource())
	t.container.VolumeMounts = append(t.container.VolumeMounts, scriptMount(fuseScript))
	if t.container.Lifecycle == nil {
		t.container.Lifecycle = &corev1.Lifecycle{}
	}
	t.container.Lifecycle.PostStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "/" + fuseScript, at, t.subPath}}}
}

// mountChecks gives containers that mount one of the Datasets the script that waits for
// it, and has those run it that a label of the pod asks for.
func (d *draft) mountChecks(of []*Mounted) {
	const why = fuseSidecarName + ": waits until datasets are mounted"
	onlyVineyard := len(of) == 1 && of[0].Type == "vineyard"
	if onlyVineyard {
		return
	}
	run := d.pod.labels.is(appPostStartLabel)
	added := false
	for _, list := range []struct {
		containers []draftContainer
		run        bool // an init container has no postStart
	}{{d.containers, run}, {d.init, false}} {
		for i := range list.containers {
			c := &list.containers[i]
			var folders []string
			if c.container != nil {
				for j := range c.container.mounts {
					if mount := &c.container.mounts[j]; d.behind(mount.volume, of) != nil {
						folders = append(folders, mount.path)
					}
				}
			} else {
				for j := range c.made.VolumeMounts {
					if mount := &c.made.VolumeMounts[j]; d.behind(mount.Name, of) != nil {
						folders = append(folders, mount.MountPath)
					}
				}
			}
			if len(folders) == 0 {
				continue
			}
			added = true
			d.mount(c, scriptMount(appScript), why)
			if list.run && c.container != nil && c.postStart == nil && !hasPostStart(c.lifecycle) {
				c.postStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "/" + appScript, strings.Join(folders, ":")}}}
				c.whyMore = why
				d.changes++
			}
		}
	}
	if added {
		d.addVolume(scriptsVolumeSource(), why)
	}
}

// hasPostStart tells whether a container's lifecycle has a postStart.
func hasPostStart(lifecycle jsontext.Value) bool {
	found, _ := jsonpatch.Lookup(lifecycle, "postStart")
	return len(found) > 0 && found.Kind() != 'n'
}
