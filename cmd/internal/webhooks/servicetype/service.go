// SPDX-License-Identifier: Apache-2.0

package servicetype

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// service is the relevant part of a Service. Its strings alias the Service's bytes.
type service struct {
	kind        []byte // spec.type; empty means ClusterIP
	class       []byte // spec.loadBalancerClass
	externalIPs [][]byte
	metadata    jsontext.Value
}

// readService reads a Service in one pass. It returns false if the Service, its spec or
// external IPs are malformed.
func readService(raw []byte) (s service, ok bool) {
	r := rawjson.NewReader(raw)
	valid := true
	ok = r.Object(func(field []byte) {
		switch string(field) {
		case "metadata":
			if kind := r.Kind(); kind != '{' && kind != 'n' {
				valid = false
			}
			s.metadata = r.Value()
		case "spec":
			valid = r.Object(func(field []byte) {
				switch string(field) {
				case "type":
					s.kind, _ = r.String()
				case "loadBalancerClass":
					s.class, _ = r.String()
				case "externalIPs":
					if r.Kind() == 'n' {
						return
					}
					valid = r.Array(func(int) {
						ip, isString := r.String()
						valid = valid && isString
						s.externalIPs = append(s.externalIPs, ip)
					}) && valid
				}
			}) && valid
		}
	})
	return s, ok && valid
}

// has reports whether the Service has the feature.
func (s *service) has(feature Feature) bool {
	if feature == ExternalIPs {
		return len(s.externalIPs) > 0
	}
	return string(s.kind) == string(feature)
}

// begins reports whether an update adds the feature. What the Service had before may
// stay. An added external IP is new, a removed one is not.
func (s *service) begins(feature Feature, before *service) bool {
	switch {
	case !s.has(feature):
		return false
	case before == nil:
		return true
	case feature == ExternalIPs:
		return slices.ContainsFunc(s.externalIPs, func(ip []byte) bool {
			return !slices.ContainsFunc(before.externalIPs, func(other []byte) bool { return bytes.Equal(ip, other) })
		})
	}
	return !before.has(feature)
}

// hasLabels reports whether the Service has all of the labels.
func (s *service) hasLabels(wanted map[string]string) bool {
	if len(wanted) == 0 {
		return true
	}
	found := 0
	r := rawjson.NewReader(s.metadata)
	r.Object(func(field []byte) {
		if string(field) != "labels" {
			return
		}
		r.Object(func(key []byte) {
			want, isWanted := wanted[string(key)]
			if !isWanted {
				return
			}
			if value, isString := r.String(); isString && string(value) == want {
				found++
			}
		})
	})
	return found == len(wanted)
}

// name names the Service in messages, as far as it has a name yet.
func (s *service) name() string {
	var name, generateName []byte
	r := rawjson.NewReader(s.metadata)
	r.Object(func(field []byte) {
		switch string(field) {
		case "name":
			name, _ = r.String()
		case "generateName":
			generateName, _ = r.String()
		}
	})
	switch {
	case len(name) > 0:
		return string(name)
	case len(generateName) > 0:
		return string(generateName)
	}
	return "(without a name)"
}
