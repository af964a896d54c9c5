// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/scripts"
)

// maxRounds limits how often sidecars may need sidecars themselves.
const maxRounds = 8

// Volume names in a fuse's DaemonSet by which Fluid's controllers recognize a volume's
// purpose. Any suffix may follow.
var (
	cacheVolumes  = []string{"datavolume-", "volume-localtime", "cache-dir", "mem", "ssd", "hdd"}
	mountVolumes  = []string{"alluxio-fuse-mount", "jindofs-fuse-mount", "juicefs-fuse-mount", "thin-fuse-mount", "efc-fuse-mount", "efc-sock"}
	deviceVolumes = []string{"alluxio-fuse-device", "jindofs-fuse-device", "thin-fuse-device"}
)

// fuseSidecar mounts Datasets on serverless nodes: each claim of a Dataset becomes a
// host path, on which a container of the pod mounts the Dataset. Sidecars that mount
// claims of Datasets get sidecars too.
func fuseSidecar(ctx context.Context, d *draft) (stop bool, err error) {
	if len(d.mounted) == 0 {
		return false, nil
	}
	platform, err := d.platform()
	if err != nil {
		return false, err
	}
	todo := d.mounted
	for round := 0; len(todo) > 0; round++ {
		if round == maxRounds {
			return false, refusef("the sidecars of datasets mount datasets more than %d levels deep: correct the mounts of their runtimes", maxRounds)
		}
		templates := make([]*template, len(todo))
		for i, m := range todo {
			if templates[i], err = d.template(ctx, m); err != nil {
				return false, err
			}
		}
		d.mountChecks(templates)
		for _, t := range templates {
			if err := d.inject(t, platform); err != nil {
				return false, err
			}
		}
		if todo, err = d.moreDatasets(); err != nil {
			return false, err
		}
		for _, m := range todo {
			m.nested = true
		}
		d.mounted = append(slices.Clip(d.mounted), todo...)
	}
	d.label(DoneLabel, "true", fuseSidecarName+": sidecars were added")
	d.label(managedByLabel, "fluid", fuseSidecarName+": sidecars were added")
	return false, nil
}

const (
	platformDefault      = "default"
	platformUnprivileged = "unprivileged"
)

// platform says what sidecars may do.
func (d *draft) platform() (string, error) {
	labels := d.pod.Labels
	if key := d.settings.PlatformLabel; key != "" {
		if value, ok := labels.Lookup(key); ok {
			if is(labels, ServerlessLabel) {
				return "", refusef("label %s is deprecated and cannot stand beside %s: use the annotation %s", key, ServerlessLabel, platformAnnotation)
			}
			return knownPlatform(value)
		}
	}
	if is(labels, UnprivilegedLabel) {
		return platformUnprivileged, nil
	}
	// The deprecated label is older than the annotation.
	if value, ok := d.pod.Annotations.Lookup(platformAnnotation); ok && !is(labels, SidecarLabel) {
		return knownPlatform(value)
	}
	return platformDefault, nil
}

func knownPlatform(name string) (string, error) {
	for _, known := range []string{platformDefault, platformUnprivileged} {
		if strings.EqualFold(name, known) {
			return known, nil
		}
	}
	return "", refusef("the serverless platform of the pod is not known: choose %s or %s", platformDefault, platformUnprivileged)
}

// moreDatasets returns the Datasets that only sidecars mount.
func (d *draft) moreDatasets() ([]*Mounted, error) {
	var claims []string
	for i := range d.volumes {
		if v := &d.volumes[i]; v.made != nil && v.made.PersistentVolumeClaim != nil && d.dataset(v.claim) == nil {
			claims = append(claims, v.claim)
		}
	}
	slices.Sort(claims)
	claims = slices.Compact(claims)
	if len(claims) == 0 {
		return nil, nil
	}
	more, err := d.resolve(claims)
	// Sources of a Dataset may carry its own label. They are not Datasets below it.
	return slices.DeleteFunc(more, func(m *Mounted) bool {
		return slices.ContainsFunc(d.mounted, func(other *Mounted) bool { return other.Name == m.Name })
	}), err
}

// A template is the source of a sidecar.
type template struct {
	mounted   *Mounted
	container corev1.Container
	volumes   []corev1.Volume
	// hostPath is the fuse's mount point on the host, kind the file system type of the
	// mount, and subPath the Dataset's folder below it.
	hostPath, kind, subPath string
	// mountPath is where the container mounts hostPath.
	mountPath string
}

// template reads the fuse's DaemonSet and the attributes of the volume that Fluid
// created for the Dataset. A claim labelled as the Dataset's may be bound to another
// volume, so the volume's owner is checked. Both are read on demand: such pods are few,
// DaemonSets and volumes many.
func (d *draft) template(ctx context.Context, m *Mounted) (*template, error) {
	t := &template{mounted: m}
	volumeName := m.Namespace + "-" + m.Name
	volume := corev1.PersistentVolume{}
	if err := d.read(ctx, m, Ref{kinds.Volume, "", volumeName}, &volume); err != nil {
		return nil, err
	}
	// A combined namespace and name could not distinguish a/b-c from a-b/c.
	if claim := volume.Spec.ClaimRef; claim != nil && (claim.Namespace != m.Namespace || claim.Name != m.Name) {
		return nil, refusef("dataset %s: its volume %s is bound to the claim of another dataset: rename one of them", m.Title(), volumeName)
	}
	if volume.Spec.CSI == nil || volume.Spec.CSI.VolumeAttributes["fluid_path"] == "" {
		return nil, refusef("dataset %s: its volume %s has no attribute fluid_path: it does not belong to Fluid", m.Title(), volumeName)
	}
	attributes := volume.Spec.CSI.VolumeAttributes
	t.hostPath, t.kind, t.subPath = attributes["fluid_path"], attributes["mount_type"], attributes["fluid_sub_path"]
	fuse := appsv1.DaemonSet{}
	ref := Ref{kinds.DaemonSet, m.Namespace, m.Name + kinds.Runtimes[m.Type].Fuse}
	if err := d.read(ctx, m, ref, &fuse); err != nil {
		return nil, err
	}
	if len(fuse.Spec.Template.Spec.Containers) == 0 {
		return nil, refusef("dataset %s: %s has no container to make a sidecar of", m.Title(), ref)
	}
	t.container = fuse.Spec.Template.Spec.Containers[0]
	t.volumes = slices.DeleteFunc(fuse.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return !slices.ContainsFunc(t.container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name }) &&
			!slices.ContainsFunc(t.container.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == v.Name })
	})
	for _, mount := range t.container.VolumeMounts {
		if strings.HasSuffix(mount.Name, "-fuse-mount") {
			t.mountPath = mount.MountPath
		}
	}
	return t, nil
}

func (d *draft) read(ctx context.Context, m *Mounted, ref Ref, into any) error {
	object, err := d.source.Find(ctx, ref, true)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", ref, err)
	case object == nil:
		return refusef("dataset %s: %s, the template of its sidecar, does not exist: wait until its runtime is ready", m.Title(), ref)
	}
	if err := json.Unmarshal(object.Raw, into); err != nil {
		return fmt.Errorf("%s cannot be read: %w", ref, err)
	}
	return nil
}

// inject adds the sidecar of one Dataset.
func (d *draft) inject(t *template, platform string) error {
	m := t.mounted
	why := "dataset " + m.Title() + ": " + fuseSidecarName + ": "
	if !is(d.pod.Labels, cacheDirLabel) {
		t.drop(cacheVolumes)
	}
	if platform == platformUnprivileged {
		t.drop(mountVolumes)
		t.drop(deviceVolumes)
		t.unprivileged()
	}
	if !m.Runtime.Scrape {
		t.container.Ports = slices.DeleteFunc(t.container.Ports, func(p corev1.ContainerPort) bool { return strings.HasSuffix(p.Name, "-metrics") })
	} else if _, ok := d.annotation(scrapeAnnotation); !ok {
		d.annotate(scrapeAnnotation, "true", why+"its metrics are to be scraped")
	}
	hostPath := t.hostPath
	if mode, _ := d.annotation(hostPathAnnotation); mode == "random-suffix" {
		// Practically random, but the same for the same request.
		unique := d.uniqueFolder(m.Claim)
		hostPath = path.Join(path.Dir(hostPath), unique, path.Base(hostPath))
		for i := range t.volumes {
			if v := &t.volumes[i]; v.HostPath != nil && hasPrefix(v.Name, mountVolumes) {
				v.HostPath.Path += "/" + unique
			}
		}
	}
	used, usedByInit := d.mountFolder(m, path.Join(hostPath, t.subPath), why)
	if !used && !usedByInit {
		return nil
	}
	suffix := "-" + strconv.Itoa(d.nextSidecar())
	if d.pod.Labels.Get(fusePostStartLabel) != "false" {
		t.checkMount()
	}
	names := make(map[string]string, len(t.volumes)) // a new name may be the former one of another volume
	for i := range t.volumes {
		v := &t.volumes[i]
		was := v.Name
		if was != scripts.VolumeName {
			v.Name = d.freeName(was + suffix)
		}
		names[was] = v.Name
		d.addVolume(v, why+"its fuse needs the volume")
	}
	t.rename(names)
	if d.settings.SidecarMode == NativeSidecar {
		always := corev1.ContainerRestartPolicyAlways
		c := t.container
		c.Name, c.RestartPolicy = fuseContainer+suffix, &always
		return d.prepend(&d.init, m, c, why)
	}
	if used {
		c := t.container
		c.Name = fuseContainer + suffix
		if err := d.prepend(&d.containers, m, c, why); err != nil {
			return err
		}
	}
	if usedByInit {
		c := t.container
		c.Name, c.Lifecycle, c.Command, c.Args = initFuseContainer+suffix, nil, []string{"sleep"}, []string{"2s"}
		return d.prepend(&d.init, m, c, why)
	}
	return nil
}

// prepend inserts a sidecar at the front of a list and records its Dataset.
func (d *draft) prepend(list *[]draftContainer, m *Mounted, made corev1.Container, why string) error {
	made.VolumeMounts = slices.Clone(made.VolumeMounts) // the other list may share it
	*list = slices.Insert(*list, 0, draftContainer{made: &made, why: why + "mounts it"})
	d.changes++
	if len(m.Name) > maxLabelName {
		d.warnf("the labels %s%s and %s%s are left out: the dataset's name is longer than a label's value may be", datasetNameOf, made.Name, datasetNamespaceOf, made.Name)
		return nil
	}
	d.label(datasetNamespaceOf+made.Name, m.Namespace, why+"says of which dataset the sidecar is")
	d.label(datasetNameOf+made.Name, m.Name, why+"says of which dataset the sidecar is")
	return nil
}

// mountFolder replaces the Dataset's claim with a host path, and reports which
// containers use it.
func (d *draft) mountFolder(m *Mounted, folder, why string) (used, usedByInit bool) {
	for i := range d.volumes {
		v := &d.volumes[i]
		if v.claim != m.Claim {
			continue
		}
		v.made = &corev1.Volume{Name: v.name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}
		v.why = why + "is mounted by its sidecar"
		d.changes++
	}
	of := []*Mounted{m}
	for _, list := range []struct {
		containers []draftContainer
		used       *bool
	}{{d.containers, &used}, {d.init, &usedByInit}} {
		for i := range list.containers {
			*list.used = d.propagate(&list.containers[i], of, true, fuseSidecarName) || *list.used
		}
	}
	return used, usedByInit
}

// nextSidecar returns the number of the next sidecar.
func (d *draft) nextSidecar() int {
	next := 0
	for _, list := range [][]draftContainer{d.containers, d.init} {
		for i := range list {
			for _, prefix := range []string{fuseContainer + "-", initFuseContainer + "-"} {
				rest, ok := strings.CutPrefix(list[i].containerName(), prefix)
				if n, err := strconv.Atoi(rest); ok && err == nil && n >= next && n < 1<<20 {
					next = n + 1
				}
			}
		}
	}
	return next
}

// freeName returns the name, with a number if a volume already has it.
func (d *draft) freeName(name string) string {
	free := name
	for n := 1; slices.ContainsFunc(d.volumes, func(v draftVolume) bool { return v.name == free }); n++ {
		free = name + "-" + strconv.Itoa(n)
	}
	return free
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// drop removes volumes with these name prefixes, and their mounts and devices.
func (t *template) drop(prefixes []string) {
	t.volumes = slices.DeleteFunc(t.volumes, func(v corev1.Volume) bool { return hasPrefix(v.Name, prefixes) })
	t.container.VolumeMounts = slices.DeleteFunc(t.container.VolumeMounts, func(m corev1.VolumeMount) bool { return hasPrefix(m.Name, prefixes) })
}

// rename renames the volumes of mounts and devices.
func (t *template) rename(names map[string]string) {
	for i := range t.container.VolumeMounts {
		mount := &t.container.VolumeMounts[i]
		mount.Name = cmp.Or(names[mount.Name], mount.Name)
	}
	for i := range t.container.VolumeDevices {
		device := &t.container.VolumeDevices[i]
		device.Name = cmp.Or(names[device.Name], device.Name)
	}
}

// unprivileged removes what only privileged containers may have.
func (t *template) unprivileged() {
	security := t.container.SecurityContext
	if security == nil {
		return
	}
	security.Privileged = nil
	if security.Capabilities != nil {
		security.Capabilities.Add = slices.DeleteFunc(security.Capabilities.Add, func(c corev1.Capability) bool { return c == "SYS_ADMIN" })
	}
}
