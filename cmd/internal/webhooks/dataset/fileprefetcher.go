// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	allFiles              = "<ALL>"
	claimScheme           = "pvc://"
	defaultPrefetchTime   = "120"
	waitForPrefetching    = `n=0; until [ -e ` + prefetcherStatusPath + `/prefetcher.status ]; do n=$((n+1)); if [ "$n" -gt "$FILE_PREFETCHER_TIMEOUT_SECONDS" ]; then echo "files were not fetched in time"; exit 1; fi; sleep 1; done`
	filePrefetcherChanges = filePrefetcherName + ": files are fetched before they are read"
)

// filePrefetcher adds a container that reads files of Datasets in advance, if an
// annotation requests it.
func filePrefetcher(_ context.Context, d *draft) (stop bool, err error) {
	if inject, _ := d.annotation(prefetcherInject); inject != "true" {
		return false, nil
	}
	if done, _ := d.annotation(prefetcherDone); done == "true" {
		return false, nil
	}
	get := func(key, otherwise string) string {
		if value, ok := d.annotation(key); ok {
			return value
		}
		return otherwise
	}
	image := get(prefetcherImage, d.settings.FilePrefetcherImage)
	if image == "" {
		return true, refusef("file prefetcher's image is required: set it by the pod's annotation %s, or by the webhook's setting filePrefetcherImage", prefetcherImage)
	}
	async, err := strconv.ParseBool(get(prefetcherAsync, "false"))
	if err != nil {
		return true, refusef("annotation %s must be true or false", prefetcherAsync)
	}
	timeout, err := strconv.ParseInt(get(prefetcherTimeout, defaultPrefetchTime), 10, 32)
	if err != nil || timeout < 0 {
		return true, refusef("annotation %s must be a number of seconds", prefetcherTimeout)
	}
	extra, err := extraEnvs(get(prefetcherExtraEnvs, ""))
	if err != nil {
		return true, err
	}
	mounts, globs := d.prefetched(get(prefetcherFileList, allFiles))
	if len(globs) == 0 {
		return false, nil
	}
	mounts = append(mounts, corev1.VolumeMount{Name: prefetcherStatusName, MountPath: prefetcherStatusPath})
	made := &corev1.Container{
		Name:  prefetcherContainer,
		Image: image,
		Env: append([]corev1.EnvVar{
			{Name: "FILE_PREFETCHER_FILE_LIST", Value: strings.Join(globs, ";")},
			{Name: "FILE_PREFETCHER_ASYNC_PREFETCH", Value: strconv.FormatBool(async)},
			{Name: "FILE_PREFETCHER_TIMEOUT_SECONDS", Value: strconv.FormatInt(timeout, 10)},
		}, extra...),
		VolumeMounts: mounts,
	}
	if async {
		for i := range d.containers {
			if c := &d.containers[i]; !strings.HasPrefix(c.containerName(), fuseContainer) {
				d.mount(c, corev1.VolumeMount{Name: prefetcherStatusName, MountPath: prefetcherStatusPath}, filePrefetcherChanges)
			}
		}
	} else {
		made.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", waitForPrefetching}}}}
	}
	at := 0
	for i := range d.containers {
		if strings.HasPrefix(d.containers[i].containerName(), fuseContainer) {
			at = i + 1
		}
	}
	d.containers = slices.Insert(d.containers, at, draftContainer{made: made, why: filePrefetcherChanges})
	d.addVolume(&corev1.Volume{Name: prefetcherStatusName, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, filePrefetcherChanges)
	d.annotate(prefetcherDone, "true", filePrefetcherChanges)
	return false, nil
}

// extraEnvs parses "K=V K=V". The error, a [refusal], contains no value.
func extraEnvs(list string) ([]corev1.EnvVar, error) {
	var out []corev1.EnvVar
	for i, one := range strings.Fields(list) {
		name, value, ok := strings.Cut(one, "=")
		if !ok || len(validation.IsEnvVarName(name)) > 0 {
			return nil, refusef("annotation %s: part %d is no name=value", prefetcherExtraEnvs, i+1)
		}
		out = append(out, corev1.EnvVar{Name: name, Value: value})
	}
	slices.SortStableFunc(out, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// prefetched returns the volumes and paths of a list of files. It ignores entries that
// are not files of the pod's Datasets.
func (d *draft) prefetched(list string) (mounts []corev1.VolumeMount, globs []string) {
	if list == allFiles {
		var all []string
		for _, m := range d.mounted {
			all = append(all, claimScheme+m.Claim)
		}
		list = strings.Join(all, ";")
	}
	for uri := range strings.SplitSeq(list, ";") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(uri), claimScheme)
		if !ok {
			continue
		}
		claim, glob, ok := strings.Cut(rest, "/")
		if !ok {
			glob = "**"
		}
		if d.dataset(claim) == nil {
			continue
		}
		for i := range d.pod.volumes {
			v := &d.pod.volumes[i]
			if v.claim != claim {
				continue
			}
			at := "/data/" + v.name
			// Cleaned as an absolute path, it cannot leave the volume.
			if glob := path.Join(at, path.Clean("/"+glob)); !slices.Contains(globs, glob) {
				globs = append(globs, glob)
			}
			if !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == v.name }) {
				mounts = append(mounts, corev1.VolumeMount{Name: v.name, MountPath: at})
			}
		}
	}
	slices.SortStableFunc(mounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
	return mounts, globs
}

// mount adds a mount to a container, unless the path already has one.
func (d *draft) mount(c *draftContainer, mount corev1.VolumeMount, why string) {
	if c.made != nil {
		if !slices.ContainsFunc(c.made.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }) {
			c.made.VolumeMounts = append(c.made.VolumeMounts, mount)
			d.changes++
		}
		return
	}
	for i := range c.container.mounts {
		if c.container.mounts[i].path == mount.MountPath {
			return
		}
	}
	if slices.ContainsFunc(c.mounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }) {
		return
	}
	c.mounts = append(c.mounts, mount)
	c.whyMore = why
	d.changes++
}

// addVolume adds a volume, unless the name exists.
func (d *draft) addVolume(made *corev1.Volume, why string) {
	for i := range d.volumes {
		if d.volumes[i].name == made.Name {
			return
		}
	}
	v := draftVolume{volume: volume{name: made.Name}, made: made, why: why}
	if made.PersistentVolumeClaim != nil {
		v.claim = made.PersistentVolumeClaim.ClaimName
	}
	d.volumes = append(d.volumes, v)
	d.changes++
}
