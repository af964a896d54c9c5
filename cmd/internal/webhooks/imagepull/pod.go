// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// MirrorAnnotation marks the mirror pod of a static pod. The kubelet runs the static
// pod from a file, whatever happens to the mirror, so it is left alone.
const MirrorAnnotation = "kubernetes.io/config.mirror"

// A use is a place of a pod that names an image. Its strings alias the pod's bytes.
type use struct {
	list      string // containers, initContainers, ephemeralContainers, volumes
	index     int
	name      []byte // of the container or volume
	image     []byte
	policy    []byte // imagePullPolicy, or pullPolicy of a volume
	hasPolicy bool   // the field is present, even if null
}

const volumes = "volumes"

// path returns the pointer to the pull policy.
func (u *use) path() string {
	path := "/spec/" + u.list + "/" + strconv.Itoa(u.index)
	if u.list == volumes {
		return path + "/image/pullPolicy"
	}
	return path + "/imagePullPolicy"
}

// field names the place in messages, "spec.containers[0] (app)". Container names are
// not secret.
func (u *use) field() string {
	return "spec." + u.list + "[" + strconv.Itoa(u.index) + "] (" + string(u.name) + ")"
}

func (u *use) pulledAlways() bool { return string(u.policy) == "Always" }

// same reports whether another pod has the image in the same container.
func (u *use) same(others []use) bool {
	for i := range others {
		o := &others[i]
		if o.list == u.list && bytes.Equal(o.name, u.name) && bytes.Equal(o.image, u.image) {
			return true
		}
	}
	return false
}

// runs reports whether a container of another pod runs the image, as the AlwaysPullImages
// plugin compares. That pod has pulled it with its own credentials.
func (u *use) runs(others []use) bool {
	return u.list != volumes && slices.ContainsFunc(others, func(o use) bool { return o.list != volumes && bytes.Equal(o.image, u.image) })
}

// readPod calls found for each use of an image, in one pass. It reports whether the pod
// is a mirror pod. Ok is false if the pod, a container or a volume is malformed.
func readPod(raw []byte, found func(use)) (mirror, ok bool) {
	r := rawjson.NewReader(raw)
	valid := true
	ok = r.Object(func(field []byte) {
		switch string(field) {
		case "metadata":
			valid = readMirror(&r, &mirror) && valid
		case "spec":
			valid = r.Object(func(field []byte) {
				switch string(field) {
				case "containers":
					valid = readContainers(&r, "containers", found) && valid
				case "initContainers":
					valid = readContainers(&r, "initContainers", found) && valid
				case "ephemeralContainers":
					valid = readContainers(&r, "ephemeralContainers", found) && valid
				case volumes:
					valid = readVolumes(&r, found) && valid
				}
			}) && valid
		}
	})
	return mirror, ok && valid
}

func readMirror(r *rawjson.Reader, mirror *bool) bool {
	if r.Kind() == 'n' {
		return true
	}
	return r.Object(func(field []byte) {
		if string(field) == "annotations" {
			r.Object(func(key []byte) { *mirror = *mirror || string(key) == MirrorAnnotation })
		}
	})
}

func readContainers(r *rawjson.Reader, list string, found func(use)) bool {
	if r.Kind() == 'n' {
		return true
	}
	valid := true
	return r.Array(func(index int) {
		u := use{list: list, index: index}
		valid = r.Object(func(field []byte) {
			switch string(field) {
			case "name":
				u.name, _ = r.String()
			case "image":
				u.image, _ = r.String()
			case "imagePullPolicy":
				u.policy, _ = r.String()
				u.hasPolicy = true
			}
		}) && valid
		found(u)
	}) && valid
}

func readVolumes(r *rawjson.Reader, found func(use)) bool {
	if r.Kind() == 'n' {
		return true
	}
	valid := true
	return r.Array(func(index int) {
		u, isImage := use{list: volumes, index: index}, false
		valid = r.Object(func(field []byte) {
			switch string(field) {
			case "name":
				u.name, _ = r.String()
			case "image":
				if r.Kind() == 'n' {
					return
				}
				isImage = true
				valid = r.Object(func(field []byte) {
					switch string(field) {
					case "reference":
						u.image, _ = r.String()
					case "pullPolicy":
						u.policy, _ = r.String()
						u.hasPolicy = true
					}
				}) && valid
			}
		}) && valid
		if isImage {
			found(u)
		}
	}) && valid
}
