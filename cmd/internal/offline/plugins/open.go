// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"slices"
	"strings"
)

// Open is what could refuse any pod of a namespace, and is not in the files. The zero value is empty.
type Open struct {
	namespaces [len(nouns)][]string // those that lack it, by kind
}

// What can be open, in the order in which it is printed.
const (
	openNamespace = iota
	openQuotas
	openLimits
	openAccount
)

var nouns = [...]string{"Namespace", "ResourceQuotas", "LimitRanges", "ServiceAccount default"}

func (o *Open) add(kind int, namespace string) {
	if !slices.Contains(o.namespaces[kind], namespace) {
		o.namespaces[kind] = append(o.namespaces[kind], namespace)
	}
}

// Add adds what is open for another pod.
func (o *Open) Add(other *Open) {
	for kind, namespaces := range other.namespaces {
		for _, namespace := range namespaces {
			o.add(kind, namespace)
		}
	}
}

// shown is how many namespaces are named.
const shown = 3

// String says what is open, in one line; empty if nothing is.
func (o *Open) String() string {
	var what, where []string
	for kind, namespaces := range o.namespaces {
		if len(namespaces) > 0 {
			what = append(what, nouns[kind])
		}
		where = append(where, namespaces...)
	}
	if len(what) == 0 {
		return ""
	}
	slices.Sort(where)
	if where = slices.Compact(where); len(where) > shown {
		where = append(where[:shown:shown], fmt.Sprintf("%d more namespaces", len(where)-shown))
	}
	return fmt.Sprintf("not decided without a cluster: whether the pods suit the %s of %s; --with takes them", list(what), list(where))
}

func list(of []string) string {
	last := len(of) - 1
	if last == 0 {
		return of[0]
	}
	return strings.Join(of[:last], ", ") + " and " + of[last]
}
