// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Dangling returns those of the objects that mount a volume that neither the pod nor any
// other of them has.
func (p *Pod) Dangling(objects []*plan.Plan) map[*plan.Plan]bool {
	var wanted map[string][]*plan.Plan // missing volumes and the objects that mount them
	for _, c := range objects {
		for _, volume := range c.StrayMounts {
			p.Bounds.Did(meta.WorkOfVisit)
			if there, _ := p.Volumes.Find(volume); there != nil {
				continue
			}
			if wanted == nil {
				wanted = map[string][]*plan.Plan{}
			}
			wanted[volume] = append(wanted[volume], c)
		}
	}
	if wanted == nil {
		return nil
	}
	brings := map[string]int{} // number of objects with each missing volume
	for _, c := range objects {
		for _, v := range c.Volumes {
			if wanted[v.Key] != nil {
				brings[v.Key]++
			}
		}
		p.Bounds.Did(len(c.Volumes))
	}
	gone := map[*plan.Plan]bool{}
	var missing []string
	for volume := range wanted {
		if brings[volume] == 0 {
			missing = append(missing, volume)
		}
	}
	for len(missing) > 0 {
		volume := missing[len(missing)-1]
		missing = missing[:len(missing)-1]
		for _, c := range wanted[volume] {
			if gone[c] {
				continue
			}
			gone[c] = true
			for _, v := range c.Volumes {
				if wanted[v.Key] == nil {
					continue
				}
				if brings[v.Key]--; brings[v.Key] == 0 {
					missing = append(missing, v.Key)
				}
			}
		}
	}
	return gone
}
