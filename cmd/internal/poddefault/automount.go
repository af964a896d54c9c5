// SPDX-License-Identifier: Apache-2.0

package poddefault

import "strings"

// Names with which the API server's ServiceAccount plugin mounts a token
// (k8s.io/kubernetes, plugin/pkg/admission/serviceaccount).
const (
	tokenVolumePrefix = "kube-api-access-"
	tokenMountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
)

const automountField = "automountServiceAccountToken"

// automount disables the token if a PodDefault does. The ServiceAccount plugin runs
// before webhooks and has already mounted it, so automount removes that volume and its
// mounts again. Mounts by the pod's author stay.
func (e *emitter) automount(p *pod, s *heldValue) {
	if string(s.value) != "false" {
		return
	}
	var tokens nameSet
	for i := range p.volumes.length() {
		name := string(p.volumes.key(i))
		if strings.HasPrefix(name, tokenVolumePrefix) && member(p.volumes.value(i), "projected") != nil {
			tokens.add(name)
			p.volumes.removed = append(p.volumes.removed, removal{i, s.origin})
		}
	}
	for _, containers := range [][]container{p.app, p.init} {
		for i := range containers {
			mounts := &containers[i].volumeMounts
			for j := range mounts.length() {
				if string(mounts.key(j)) == tokenMountPath && tokens.has(string(memberText("name")(mounts.value(j)))) {
					mounts.removed = append(mounts.removed, removal{j, s.origin})
				}
			}
		}
	}
}
