// SPDX-License-Identifier: Apache-2.0

// Package podmeta reads the metadata of a pod that is about to be created, and first no more of it than decides
// whether anything is to be done for the pod.
//
// In goes a pod as JSON; out come its names, labels and annotations, and where its spec begins.
package podmeta

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// MaxEntries limits the labels, and the annotations, that are read.
const MaxEntries = 20_000

// Metadata is that of a pod.
type Metadata struct {
	object       []byte         // the pod
	Raw          jsontext.Value // nil if absent; up to left until it is complete
	start, left  int            // offsets of raw and of what is left to read, 0 if nothing is
	generateName []byte

	Name        string // or generateName with its trailing dash
	Namespace   string
	Labels      Labels
	Annotations Labels
	// The original values, nil if absent.
	RawLabels, RawAnnotations jsontext.Value
	Owners                    jsontext.Value // nil if absent; once it is complete
	Crowded                   bool           // too many labels or annotations to read

	Spec int // offset of the spec, 0 if unknown
}

// Enough says after which fields of the metadata [Read] may stop.
type Enough uint8

// What a webhook decides by.
const (
	Labeled  Enough = iota // labels
	Selected               // namespace, labels and annotations
)

func (e Enough) of(md *Metadata) bool {
	return md.RawLabels != nil && (e == Labeled || md.Namespace != "" && md.RawAnnotations != nil)
}

// Read reads a pod until there is enough of it: most pods are not read further, and managedFields are half of many.
// It returns false if the pod or its metadata is malformed.
func Read(raw []byte, enough Enough) (md Metadata, ok bool) {
	md.object = raw
	r := rawjson.NewReader(raw)
	valid := true
	ok = r.Object(func(field []byte) {
		switch string(field) {
		case "spec":
			md.Spec = r.Offset()
			if md.Raw != nil {
				r.Stop()
			}
		case "metadata":
			if r.Kind() == 'n' {
				return
			}
			md.start = r.Offset()
			valid = r.Object(func(field []byte) {
				md.read(&r, field)
				if enough.of(&md) {
					md.left = r.Offset()
					r.Stop()
				}
			})
			md.Raw = r.Since(md.start)
		}
	})
	if md.Name == "" {
		md.Name = string(md.generateName)
	}
	return md, ok && valid
}

// Complete reads what [Read] left, if anything.
func (md *Metadata) Complete() {
	if md.left == 0 {
		return
	}
	r := rawjson.NewReader(md.object[md.left:])
	r.Rest(func(field []byte) { md.read(&r, field) })
	end := md.left + len(r.Since(0))
	md.Raw = md.object[md.start:end:end]
	if md.Name == "" {
		md.Name = string(md.generateName)
	}
	r.Rest(func(field []byte) {
		if string(field) == "spec" {
			md.Spec = md.left + r.Offset()
			r.Stop()
		}
	})
	md.left = 0
}

// read reads a field of the metadata.
func (md *Metadata) read(r *rawjson.Reader, field []byte) {
	switch string(field) {
	case "name":
		name, _ := r.String()
		md.Name = string(name)
	case "generateName":
		md.generateName, _ = r.String()
	case "namespace":
		namespace, _ := r.String()
		md.Namespace = string(namespace)
	case "ownerReferences":
		md.Owners = r.Value()
	case "labels":
		md.RawLabels, md.Labels = md.readLabels(r)
	case "annotations":
		md.RawAnnotations, md.Annotations = md.readLabels(r)
	}
}

func (md *Metadata) readLabels(r *rawjson.Reader) (raw jsontext.Value, l Labels) {
	start := r.Offset()
	l, crowded := ReadLabels(r, MaxEntries)
	md.Crowded = md.Crowded || crowded
	return r.Since(start), l
}

// ReadLabels reads an object of texts. If there are more than most, it stops all reading.
func ReadLabels(r *rawjson.Reader, most int) (l Labels, more bool) {
	r.Object(func(key []byte) {
		if len(l.List) == most {
			more = true
			r.Stop()
			return
		}
		if value, ok := r.String(); ok {
			if l.List == nil {
				l.List = make([]pair, 0, 8)
			}
			l.List = append(l.List, pair{key, value})
		}
	})
	l.reindex()
	return l, more
}
