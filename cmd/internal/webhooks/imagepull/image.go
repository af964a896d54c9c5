// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"errors"
	"strings"
)

const (
	defaultRegistry = "docker.io"
	officialImages  = "library"
)

// image is a reference as container runtimes parse it:
// [registry/]repository[:tag][@digest].
type image struct {
	place       string // registry and repository, never empty
	tag, digest string
}

// parseImage never fails: an invalid reference gives a place that is on no list.
func parseImage(reference string) image {
	var out image
	rest, digest, _ := strings.Cut(reference, "@")
	out.digest = digest
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest, out.tag = rest[:colon], rest[colon+1:]
	}
	out.place = canonicalPlace(rest)
	return out
}

// canonicalPlace adds the default registry to a name without one. The part before the
// first slash is a registry if it contains a dot or colon, or is localhost.
func canonicalPlace(name string) string {
	registry, repository, cut := strings.Cut(name, "/")
	switch {
	case !cut:
		return defaultRegistry + "/" + officialImages + "/" + name
	case !strings.ContainsAny(registry, ".:") && registry != "localhost":
		return defaultRegistry + "/" + name
	}
	registry = strings.ToLower(registry)
	if registry == "index.docker.io" {
		registry = defaultRegistry
	}
	if registry == defaultRegistry && !strings.Contains(repository, "/") {
		repository = officialImages + "/" + repository
	}
	return registry + "/" + repository
}

// latest reports whether the registry may return a different image over time: for the
// tag latest, which is also the default tag.
func (i image) latest() bool {
	return i.digest == "" && (i.tag == "" || i.tag == "latest")
}

// places are registries and repository prefixes.
type places []string

// has reports whether a canonical place equals or is below one of them.
func (p places) has(place string) bool {
	for _, entry := range p {
		if rest, ok := strings.CutPrefix(place, entry); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// parsePlace parses an entry of a list: a registry, optionally with whole components of
// a repository, without tag and digest.
func parsePlace(entry string) (string, error) {
	registry, repository, cut := strings.Cut(entry, "/")
	host, port, hasPort := strings.Cut(registry, ":")
	switch {
	case entry == "":
		return "", errors.New("it is empty: name a registry, such as registry.example.com")
	case strings.Contains(entry, "://"):
		return "", errors.New("leave out the scheme")
	case strings.ContainsAny(entry, "*? \t"):
		return "", errors.New("patterns are not known; a name stands for all below it")
	case strings.ContainsAny(entry, "@") || strings.Contains(repository, ":"):
		return "", errors.New("leave out tag and digest")
	case host == "" || (!strings.Contains(host, ".") && !hasPort && host != "localhost"):
		return "", errors.New("begin with the registry, such as " + defaultRegistry + "/")
	case hasPort && (port == "" || strings.Trim(port, "0123456789") != ""):
		return "", errors.New("the port must be a number")
	case cut && strings.Contains("/"+repository+"/", "//"):
		return "", errors.New("there is nothing between or behind slashes")
	}
	registry = strings.ToLower(registry)
	if registry == "index.docker.io" {
		registry = defaultRegistry
	}
	if cut {
		return registry + "/" + repository, nil
	}
	return registry, nil
}

// parsePlaces parses validated entries.
func parsePlaces(entries []string) places {
	out := make(places, 0, len(entries))
	for _, entry := range entries {
		if place, err := parsePlace(entry); err == nil {
			out = append(out, place)
		}
	}
	return out
}
