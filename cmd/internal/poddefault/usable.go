// SPDX-License-Identifier: Apache-2.0

package poddefault

import "slices"

// usable separates PodDefaults that cannot work, because of their own problem or
// because they mount a volume that neither the pod nor another object has. The API
// server would refuse the pod because of them.
func usable(p *pod, chosen []*Compiled) (applied, invalid []*Compiled) {
	applied = slices.DeleteFunc(slices.Clone(chosen), func(c *Compiled) bool { return c.problem != nil })
	if gone := dangling(p, applied); len(gone) > 0 {
		applied = slices.DeleteFunc(applied, func(c *Compiled) bool { return gone[c] })
	}
	if len(applied) == len(chosen) {
		return applied, nil
	}
	next := 0
	for _, c := range chosen {
		if next < len(applied) && applied[next] == c {
			next++
		} else {
			invalid = append(invalid, c)
		}
	}
	return applied, invalid
}

// dangling returns the objects that mount a volume that neither the pod nor any usable
// object has.
func dangling(p *pod, objects []*Compiled) map[*Compiled]bool {
	var wanted map[string][]*Compiled // missing volumes and the objects that mount them
	for _, c := range objects {
		for _, volume := range c.strayMounts {
			p.bounds.did(workOfVisit)
			if there, _ := p.volumes.find(volume); there != nil {
				continue
			}
			if wanted == nil {
				wanted = map[string][]*Compiled{}
			}
			wanted[volume] = append(wanted[volume], c)
		}
	}
	if wanted == nil {
		return nil
	}
	brings := map[string]int{} // number of objects with each missing volume
	for _, c := range objects {
		for _, v := range c.volumes {
			if wanted[v.key] != nil {
				brings[v.key]++
			}
		}
		p.bounds.did(len(c.volumes))
	}
	gone := map[*Compiled]bool{}
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
			for _, v := range c.volumes {
				if wanted[v.key] == nil {
					continue
				}
				if brings[v.key]--; brings[v.key] == 0 {
					missing = append(missing, v.key)
				}
			}
		}
	}
	return gone
}
