// SPDX-License-Identifier: Apache-2.0

// Command engine compares objects as they were applied with what a cluster has of them, by the engine of
// Argo CD, and fails if it would show them as out of sync. It is a module of its own, because the engine
// needs all of Kubernetes.
//
// Usage: engine APPLIED.yaml LIVE.yaml; both are streams of documents, or lists, in the same order
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: engine APPLIED.yaml LIVE.yaml")
		os.Exit(2)
	}
	applied, err := read(os.Args[1])
	if err != nil {
		fail(err)
	}
	live, err := read(os.Args[2])
	if err != nil {
		fail(err)
	}
	if len(applied) != len(live) {
		fail(fmt.Errorf("%d objects were applied, and there are %d", len(applied), len(live)))
	}
	for i := range applied {
		if applied[i].GetKind() != live[i].GetKind() || applied[i].GetName() != live[i].GetName() {
			fail(fmt.Errorf("%s %s is compared with %s %s", applied[i].GetKind(), applied[i].GetName(), live[i].GetKind(), live[i].GetName()))
		}
	}
	results, err := diff.DiffArray(applied, live)
	if err != nil {
		fail(err)
	}
	for i, result := range results.Diffs {
		if result.Modified {
			fmt.Printf("%s %s is out of sync:\n%s\n%s\n", applied[i].GetKind(), applied[i].GetName(), result.NormalizedLive, result.PredictedLive)
		}
	}
	if results.Modified {
		os.Exit(1)
	}
	fmt.Printf("%d objects are in sync\n", len(applied))
}

func read(file string) (out []*unstructured.Unstructured, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---\n")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if u.IsList() {
			list, err := u.ToList()
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				out = append(out, &list.Items[i])
			}
		} else if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
	return out, nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
