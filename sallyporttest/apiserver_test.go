// SPDX-License-Identifier: Apache-2.0

package sallyporttest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/sallyporttest"
)

func TestRightsAndFlagsOnARealAPIServer(t *testing.T) {
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithAPIServerFlag("disable-admission-plugins"))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}

	t.Run("the flag that disables ServiceAccount admission is gone", func(t *testing.T) {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "service account") {
			t.Errorf("got %v, want a refusal because there is no service account", err)
		}
	})

	t.Run("a kubeconfig reaches it, with the rights of the configuration", func(t *testing.T) {
		load := func(config *rest.Config) kubernetes.Interface {
			loaded, err := clientcmd.BuildConfigFromFlags("", sallyporttest.Kubeconfig(t, config))
			if err != nil {
				t.Fatal(err)
			}
			return kubernetes.NewForConfigOrDie(loaded)
		}
		if _, err := load(config).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		limited := rest.CopyConfig(config)
		limited.Impersonate.UserName = "nobody"
		if _, err := load(limited).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("somebody without rights gets %v", err)
		}
	})
}
