// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// provisionedBy marks volumes created by a provisioner, whatever its value.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// topologyKeys are the keys of both families: GA zone and region, beta zone and region.
var topologyKeys = [...]string{
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
}

// topology has the values of labels in the order of topologyKeys, or absent. It is
// comparable.
type topology [len(topologyKeys)]struct {
	there bool
	value string
}

// volume is the relevant part of a volume.
type volume struct {
	name, generateName string
	topology           topology
	provisioned        bool
	deleting           bool
	source             Source // the first requested one; empty if there is none
	id                 string // of the disk, for messages
	disk               string // its full identity
	// labels and affinity are the original bytes, if any.
	labels, affinity     jsontext.Value
	hasMetadata, hasSpec bool // they are objects
}

// readVolume reads a PersistentVolume in one pass. It returns false if a relevant part
// is malformed.
func readVolume(raw []byte, wanted []Source) (v volume, ok bool) {
	r := rawjson.NewReader(raw)
	valid := true
	found := len(sources)
	ok = r.Object(func(field []byte) {
		switch string(field) {
		case "metadata":
			v.hasMetadata = r.Kind() == '{'
			valid = v.readMetadata(&r) && valid
		case "spec":
			v.hasSpec = r.Kind() == '{'
			valid = object(&r, func(field []byte) {
				if string(field) == "nodeAffinity" {
					v.affinity = r.Value()
					return
				}
				order := slices.Index(sources, Source(field))
				if order < 0 || r.Kind() == 'n' {
					return
				}
				if order >= found { // the first wins
					return
				}
				found = order
				source := sources[order]
				var read bool
				if v.id, v.disk, read = readDisk(&r, source); !read {
					valid = false
				}
				if v.source = source; !slices.Contains(wanted, source) {
					v.source = ""
				}
			}) && valid
		}
	})
	return v, ok && valid
}

// object reads an object or null.
func object(r *rawjson.Reader, member func(field []byte)) bool {
	if r.Kind() == 'n' {
		r.Skip()
		return true
	}
	return r.Object(member)
}

func (v *volume) readMetadata(r *rawjson.Reader) bool {
	valid := true
	text := func() string {
		if r.Kind() == 'n' {
			return ""
		}
		value, ok := r.String()
		valid = valid && ok
		return string(value)
	}
	return object(r, func(field []byte) {
		switch string(field) {
		case "name":
			v.name = text()
		case "generateName":
			v.generateName = text()
		case "deletionTimestamp":
			v.deleting = text() != ""
		case "annotations":
			valid = object(r, func(key []byte) { v.provisioned = v.provisioned || string(key) == provisionedBy }) && valid
		case "labels":
			start := r.Offset()
			valid = object(r, func(key []byte) {
				if i := slices.Index(topologyKeys[:], string(key)); i >= 0 {
					v.topology[i].there, v.topology[i].value = true, text()
				}
			}) && valid
			v.labels = r.Since(start)
		}
	}) && valid
}

// readDisk returns the identity of a source's disk.
func readDisk(r *rawjson.Reader, source Source) (id, disk string, ok bool) {
	fields := source.idFields()
	values := make([]string, len(fields))
	valid := true
	ok = r.Object(func(field []byte) {
		if i := slices.Index(fields, string(field)); i >= 0 && r.Kind() != 'n' {
			value, isString := r.String()
			values[i], valid = string(value), valid && isString
		}
	})
	return values[0], string(source) + "\x00" + strings.Join(values, "\x00"), ok && valid
}

// trusted returns labels set by the volume's provisioner: the GA family or, if that is
// incomplete, the beta family. Nil means that the cloud must be queried.
func (v *volume) trusted() map[string]string {
	family := 0
	if !v.topology[0].there || !v.topology[1].there {
		family = 2
	}
	if !v.provisioned || !v.topology[family].there || !v.topology[family+1].there {
		return nil
	}
	return map[string]string{
		topologyKeys[family]:   v.topology[family].value,
		topologyKeys[family+1]: v.topology[family+1].value,
	}
}

// complete reports whether a volume has the labels of one family, and a node affinity.
func (v *volume) complete() bool {
	t := &v.topology
	return (t[0].there && t[1].there || t[2].there && t[3].there) && !isNull(v.affinity)
}

// exists reports whether the cloud can know the disk.
func (v *volume) exists() bool {
	return v.source != "" && (v.source == VsphereVolume || v.id != placeholder)
}
