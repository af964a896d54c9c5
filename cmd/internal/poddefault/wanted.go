// SPDX-License-Identifier: Apache-2.0

package poddefault

// wantedLists are the lists of a pod that some object adds to, whose elements must be
// read.
type wantedLists struct {
	volumes, tolerations, pullSecrets bool
	env, envFrom, volumeMounts        bool // of containers
	targeted                          bool // init containers may be selected too
}

func wantedBy(objects []*Compiled) (w wantedLists) {
	for _, c := range objects {
		w.volumes = w.volumes || len(c.volumes) > 0
		w.tolerations = w.tolerations || len(c.tolerations) > 0
		w.pullSecrets = w.pullSecrets || len(c.pullSecrets) > 0
		w.env = w.env || len(c.env) > 0
		w.envFrom = w.envFrom || len(c.envFrom) > 0
		w.volumeMounts = w.volumeMounts || len(c.volumeMounts) > 0
		w.targeted = w.targeted || c.target != nil
	}
	return w
}

// ofInitContainers returns the lists for init containers.
func (w wantedLists) ofInitContainers() wantedLists {
	if !w.targeted {
		return wantedLists{}
	}
	return w
}
