// SPDX-License-Identifier: Apache-2.0

package poddefault

import "strings"

// The names by which the API server's ServiceAccount plugin mounts a token
// (k8s.io/kubernetes, plugin/pkg/admission/serviceaccount).
const (
	tokenVolumePrefix = "kube-api-access-"
	tokenMountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
)

const automountField = "automountServiceAccountToken"

// automount switches the token off where a PodDefault does. The ServiceAccount plugin
// runs before webhooks and has mounted the token by then, so that to switch it off
// means to take that volume and its mounts away again. What the pod's author mounted
// there stays.
func (e *emitter) automount(p *pod, s *heldValue) {
	if string(s.value) != "false" {
		return
	}
	var tokens nameSet
	for i, volume := range p.volumes.elements() {
		if strings.HasPrefix(string(volume.key), tokenVolumePrefix) && member(volume.value, "projected") != nil {
			tokens.add(string(volume.key))
			p.volumes.removed = append(p.volumes.removed, removal{i, s.origin})
		}
	}
	for _, containers := range [][]container{p.app, p.init} {
		for i := range containers {
			mounts := &containers[i].volumeMounts
			for j, mount := range mounts.elements() {
				if string(mount.key) == tokenMountPath && tokens.has(string(memberText("name")(mount.value))) {
					mounts.removed = append(mounts.removed, removal{j, s.origin})
				}
			}
		}
	}
}
