// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// Names with which the API server's ServiceAccount plugin mounts a token
// (k8s.io/kubernetes, plugin/pkg/admission/serviceaccount).
const (
	tokenVolumePrefix = "kube-api-access-"
	tokenMountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// automount disables the token if a PodDefault does. The ServiceAccount plugin runs
// before webhooks and has already mounted it, so automount removes that volume and its
// mounts again. Mounts by the pod's author stay.
func (e *emitter) automount(p *podstate.Pod, s *podstate.HeldValue) {
	if string(s.Value) != "false" {
		return
	}
	var tokens meta.NameSet
	for i := range p.Volumes.Length() {
		name := string(p.Volumes.Key(i))
		if strings.HasPrefix(name, tokenVolumePrefix) && plan.Member(p.Volumes.Value(i), "projected") != nil {
			tokens.Add(name)
			p.Volumes.Removed = append(p.Volumes.Removed, podstate.Removal{Index: i, Origin: s.Origin})
		}
	}
	for _, containers := range [][]podstate.Container{p.App, p.Init} {
		for i := range containers {
			mounts := &containers[i].VolumeMounts
			for j := range mounts.Length() {
				if string(mounts.Key(j)) == tokenMountPath && tokens.Has(string(plan.MemberText("name")(mounts.Value(j)))) {
					mounts.Removed = append(mounts.Removed, podstate.Removal{Index: j, Origin: s.Origin})
				}
			}
		}
	}
}
