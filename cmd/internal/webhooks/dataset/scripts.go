// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Scripts with which containers wait for mounts. They are in a ConfigMap in each
// namespace with a Dataset. Its name contains a hash of their content: an existing one
// is always right, and older pods keep theirs.
const (
	scriptsVolume   = "check-fluid-mount-ready"
	appScript       = "check-fluid-mount-ready.sh"
	fuseScript      = "check-mount.sh"
	scriptsTriesMax = "30"
)

// mountedText is a shell function that reports whether a fuse, or a file system of a
// type, is mounted at or below a folder. In a line of mountinfo, the folder is the
// fifth field, and the type follows a dash (proc_pid_mountinfo(5)). A name in a path
// would prove nothing.
const mountedText = `mounted() { # FOLDER KIND [below]
  while read -r _ _ _ _ place rest; do
    case "$place" in
    "$1") ;;
    "$1"/*) [ "$3" = below ] || continue ;;
    *) continue ;;
    esac
    rest="${rest#* - }"
    type="${rest%% *}"
    case "$type" in fuse* | *"${2:-fuse}"*) return 0 ;; esac
  done </proc/self/mountinfo
  return 1
}
`

// appScriptText waits until each of the colon-separated paths in its first argument has
// a mount of the type that its second argument lists for it.
const appScriptText = `#!/bin/sh
# Waits until the folders "a:b:c" are mounted, of the kinds "x:y:z".
` + mountedText + `folders="$1:"
kinds="$2:"
while [ -n "$folders" ]; do
  folder="${folders%%:*}"
  kind="${kinds%%:*}"
  folders="${folders#*:}"
  kinds="${kinds#*:}"
  tries=0
  until mounted "$folder" "$kind"; do
    tries=$((tries + 1))
    if [ "$tries" -ge ` + scriptsTriesMax + ` ]; then
      echo "$folder is not mounted"
      exit 1
    fi
    sleep 1
  done
done
`

// fuseScriptText waits until a file system of the type in its second argument is
// mounted at or below the path in its first, and contains the folder in its third.
const fuseScriptText = `#!/bin/sh
# Waits until something of the kind "$2" is mounted at or below the folder "$1", with "$3" in it.
` + mountedText + `found() { # FOLDER NAME
  for folder in "$1" "$1"/*; do
    if [ -e "$folder/$2" ]; then return 0; fi
  done
  return 1
}
tries=0
until mounted "$1" "$2" below && found "$1" "$3"; do
  tries=$((tries + 1))
  if [ "$tries" -ge ` + scriptsTriesMax + ` ]; then
    echo "nothing is mounted below $1, or there is no $3 in it"
    exit 1
  fi
  sleep 1
done
`

// ScriptsName returns the name of the ConfigMap.
func ScriptsName() string {
	sum := sha256.Sum256([]byte(appScriptText + "\x00" + fuseScriptText))
	return scriptsVolume + "-" + hex.EncodeToString(sum[:5])
}

// Scripts returns the ConfigMap for a namespace.
func Scripts(namespace string) *corev1.ConfigMap {
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
	if t.mountPath == "" {
		return
	}
	t.volumes = append(t.volumes, *scriptsVolumeSource())
	t.container.VolumeMounts = append(t.container.VolumeMounts, scriptMount(fuseScript))
	if t.container.Lifecycle == nil {
		t.container.Lifecycle = &corev1.Lifecycle{}
	}
	t.container.Lifecycle.PostStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "/" + fuseScript, t.mountPath, t.kind, t.subPath}}}
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
	run := d.pod.labels.is(appPostStartLabel)
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
			d.mount(c, scriptMount(appScript), why)
			if list.run && c.container != nil && c.postStart == nil && !hasPostStart(c.lifecycle) {
				c.postStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "/" + appScript, mountinfoEscapes.Replace(strings.Join(folders, ":")), strings.Join(kindsOf, ":")}}}
				c.whyMore = why
				d.changes++
			}
		}
	}
	if added {
		d.addVolume(scriptsVolumeSource(), why)
	}
}

// hasPostStart reports whether a container's lifecycle has a postStart.
func hasPostStart(lifecycle jsontext.Value) bool {
	found, _ := rawjson.Lookup(lifecycle, "postStart")
	return len(found) > 0 && found.Kind() != 'n'
}

// mountinfoEscapes are the kernel's escapes in mountinfo paths (proc_pid_mountinfo(5)).
var mountinfoEscapes = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)
