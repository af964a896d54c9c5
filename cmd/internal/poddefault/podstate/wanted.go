// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// WantedLists are the lists of a pod that some object adds to, whose elements must be
// read or looked through.
type WantedLists struct {
	volumes, tolerations, pullSecrets wantedList
	env, envFrom, volumeMounts        wantedList // of containers
	targeted                          bool       // init containers may be selected too
}

// A wantedList is a list of a pod.
type wantedList struct {
	any  bool          // some object adds to it
	keys rawjson.Texts // that are looked for
	read bool          // the keys cannot be looked for, or are too many
}

// maxSought limits the keys that a list is looked through for. Reading its elements is as fast
// for more.
const maxSought = 8

var unwanted = &WantedLists{}

func wantedBy(objects []*plan.Plan) *WantedLists {
	w := &WantedLists{}
	for _, c := range objects {
		read := c.Template != nil || len(objects) > maxSought // filled in, it has other keys
		w.volumes.add(c.Volumes, nil, read)
		w.tolerations.add(c.Tolerations, nil, true)
		w.pullSecrets.add(c.PullSecrets, nil, read)
		w.env.add(c.Env, nil, read)
		w.envFrom.add(c.EnvFrom, nil, true)
		w.volumeMounts.add(c.VolumeMounts, c.TrailingSlash, read)
		w.targeted = w.targeted || c.Target != nil
	}
	return w
}

// add adds what an object adds to the list. Twins are looked for, too.
func (w *wantedList) add(items []plan.Item, twins []string, read bool) {
	if len(items) == 0 {
		return
	}
	w.any = true
	if w.read = w.read || read || w.keys.Len()+len(items)+len(twins) > maxSought; w.read {
		return
	}
	for i := range items {
		w.key(items[i].Key)
	}
	for _, twin := range twins {
		w.key(twin)
	}
}

// key adds a key. An element without the member that is the key has the empty one.
func (w *wantedList) key(key string) {
	w.keys.Add(key)
	w.read = w.read || key == ""
}

// lookThrough skips the list at the reader and returns its length, if no element can have one of
// the keys. Otherwise it consumes nothing.
func (w *wantedList) lookThrough(r *rawjson.Reader) (length int, without bool) {
	if !w.any || w.read {
		return 0, false
	}
	return w.keys.SkipArray(r)
}

// ofInitContainers returns the lists for init containers.
func (w *WantedLists) ofInitContainers() *WantedLists {
	if !w.targeted {
		return unwanted
	}
	return w
}
