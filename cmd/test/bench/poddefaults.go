// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

const (
	// podDefaultPath is where kube-apiserver calls the PodDefault webhook.
	podDefaultPath = "/apply-poddefault"
	// markPrefix and the name of a PodDefault make the annotation that says it
	// was applied; its value is the resourceVersion of the PodDefault.
	markPrefix = "poddefault.admission.kubeflow.org/poddefault-"
)

//go:embed testdata/poddefaults.yaml
var podDefaultsYAML []byte

// typicalPodDefaults are the PodDefaults of a typical namespace; each is
// selected by one label of its own.
func typicalPodDefaults() ([]*v1alpha1.PodDefault, error) {
	var all []*v1alpha1.PodDefault
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(podDefaultsYAML))
	for {
		pd := &v1alpha1.PodDefault{}
		if err := decoder.Decode(pd); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("testdata/poddefaults.yaml: %w", err)
		}
		pd.Namespace = namespace
		all = append(all, pd)
	}
}

// manyPodDefaults continues the typical ones to n objects. The further ones
// repeat their contents, but the first's, under names and labels of their own,
// so that a pod still selects what it selected before.
func manyPodDefaults(n int) ([]*v1alpha1.PodDefault, error) {
	all, err := typicalPodDefaults()
	if err != nil {
		return nil, err
	}
	templates := all[1:]
	for i := len(all); i < n; i++ {
		pd := templates[i%len(templates)].DeepCopy()
		pd.Name = fmt.Sprintf("%s-%05d", pd.Name, i)
		key := fmt.Sprintf("use-%s", pd.Name)
		pd.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{key: "true"}}
		pd.Spec.Desc = fmt.Sprintf("%s (team %d)", pd.Spec.Desc, i)
		all = append(all, pd)
	}
	return all[:n], nil
}

// createPodDefaults creates several at a time.
func createPodDefaults(ctx context.Context, objects client.Client, all []*v1alpha1.PodDefault, progress progress) error {
	const workers, step = 16, 2000
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i, pd := range all {
		if i > 0 && i%step == 0 {
			progress.sayf("  %d of %d PodDefaults created", i, len(all))
		}
		group.Go(func() error {
			if err := objects.Create(ctx, pd); err != nil {
				return fmt.Errorf("creating PodDefault %s: %w", pd.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// removeFurther leaves the first n PodDefaults of manyPodDefaults: one that a stage added for
// itself would cost the stages after it, and as a policy each costs every pod.
func removeFurther(ctx context.Context, objects client.Client, n int) error {
	kept, err := manyPodDefaults(n)
	if err != nil {
		return err
	}
	names := sets.New[string]()
	for _, pd := range kept {
		names.Insert(pd.Name)
	}
	list := &v1alpha1.PodDefaultList{}
	if err := objects.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if pd := &list.Items[i]; !names.Has(pd.Name) {
			if err := objects.Delete(ctx, pd); err != nil {
				return fmt.Errorf("removing PodDefault %s: %w", pd.Name, err)
			}
		}
	}
	return nil
}

// writePodDefaults writes what the API server has in the namespace to a file,
// for a server that holds PodDefaults in memory.
func writePodDefaults(ctx context.Context, objects client.Client, file string) (*v1alpha1.PodDefaultList, error) {
	list := &v1alpha1.PodDefaultList{}
	if err := objects.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return list, os.WriteFile(file, data, 0o600)
}
