// SPDX-License-Identifier: Apache-2.0

// Package scripts has the scripts with which containers wait for mounts. They are in a ConfigMap in each
// namespace with a Dataset. Its name contains a hash of their content: an existing one
// is always right, and older pods keep theirs.
package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The volume and the scripts: App is for containers that use datasets, Fuse for sidecars.
const (
	VolumeName = "check-fluid-mount-ready"
	App        = "check-fluid-mount-ready.sh"
	Fuse       = "check-mount.sh"
	maxTries   = "30"
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

// appText waits until each of the colon-separated paths in its first argument has
// a mount of the type that its second argument lists for it.
const appText = `#!/bin/sh
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
    if [ "$tries" -ge ` + maxTries + ` ]; then
      echo "$folder is not mounted"
      exit 1
    fi
    sleep 1
  done
done
`

// fuseText waits until a file system of the type in its second argument is
// mounted at or below the path in its first, and contains the folder in its third.
const fuseText = `#!/bin/sh
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
  if [ "$tries" -ge ` + maxTries + ` ]; then
    echo "nothing is mounted below $1, or there is no $3 in it"
    exit 1
  fi
  sleep 1
done
`

// Name returns the name of the ConfigMap.
func Name() string {
	sum := sha256.Sum256([]byte(appText + "\x00" + fuseText))
	return VolumeName + "-" + hex.EncodeToString(sum[:5])
}

// ConfigMap returns the ConfigMap for a namespace.
func ConfigMap(namespace string) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name(), Labels: map[string]string{"app.kubernetes.io/managed-by": "sallyport"},
		},
		Immutable: &immutable,
		Data:      map[string]string{App: appText, Fuse: fuseText},
	}
}

// Volume returns the volume of a pod with the scripts.
func Volume() *corev1.Volume {
	mode := int32(0o755)
	return &corev1.Volume{Name: VolumeName, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: Name()}, DefaultMode: &mode,
	}}}
}

// Mount returns the mount of a script.
func Mount(name string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: VolumeName, MountPath: "/" + name, SubPath: name, ReadOnly: true}
}

// Escapes are the kernel's escapes in mountinfo paths (proc_pid_mountinfo(5)).
var Escapes = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)
