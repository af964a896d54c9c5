// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

func TestIndexIsEmptyAgainWhenAllIsDeleted(t *testing.T) {
	index := NewIndex()
	for i := range 100 {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: fmt.Sprint(i)}}
		pd.Spec.Selector.MatchLabels = map[string]string{"shared": "true", fmt.Sprint("own-", i%7): "true"}
		index.Set(plan.Compile(pd))
	}
	for i := range 100 {
		index.Delete(podtest.Namespace, fmt.Sprint(i))
		index.Delete(podtest.Namespace, "never-there")
	}
	if index.Len() != 0 || len(index.namespaces) != 0 {
		t.Errorf("left are %d objects in %d namespaces", index.Len(), len(index.namespaces))
	}
}

// TestIndexFilesUnderTheRarestLabel checks that a label in all selectors does not make
// pods with it visit every PodDefault.
func TestIndexFilesUnderTheRarestLabel(t *testing.T) {
	index := NewIndex()
	for i := range 1000 {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: fmt.Sprint(i)}}
		pd.Spec.Selector.MatchLabels = map[string]string{"app": "notebook", fmt.Sprint("own-", i): "true"}
		index.Set(plan.Compile(pd))
	}
	ns := index.namespaces[podtest.Namespace]
	if filed := len(ns.filed["app=notebook"]); filed > 1 {
		t.Errorf("%d objects are filed under the shared label", filed)
	}
}
