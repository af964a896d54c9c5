// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration/rbac"
)

// testForbidden takes a controller's rights away and gives them back: it is refused as long as
// nothing in the cluster leads to it, and merely forbidden while something does.
func testForbidden(t *testing.T, config *rest.Config) {
	const user = "forbidden-controller"
	roles := kubernetes.NewForConfigOrDie(config).RbacV1()
	if _, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	allow := func(rules []rbacv1.PolicyRule) {
		t.Helper()
		if _, err := roles.ClusterRoles().Update(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	limited := rest.CopyConfig(config)
	limited.Impersonate.UserName = user
	controller := func(names ...string) *harness {
		var webhooks []admission.Webhook
		for _, name := range names {
			webhooks = append(webhooks, webhook(admission.TypeMutating, name))
		}
		return newController(t, limited, "forbidden", webhooks)
	}

	k := controller("a.forbidden.example.com")
	k.start()
	k.eventually("no rights is the status", func() bool {
		return apierrors.IsForbidden(k.controller.Refused()) && apierrors.IsForbidden(k.controller.Forbidden())
	})
	follower := controller("a.forbidden.example.com")
	follower.options.Leading = func() bool { return false }
	follower.start()
	follower.eventually("a follower that may not read says so", func() bool { return apierrors.IsForbidden(follower.controller.Refused()) })
	if err := follower.controller.Forbidden(); err != nil {
		t.Errorf("a follower writes nothing, and yet: %v", err)
	}

	rules := rbac.PolicyRules("forbidden")
	allow(rules)
	k.eventually("registered with the rights", func() bool { k.controller.Notify(); return k.controller.Registered() == nil })
	k.eventually("no longer refused", func() bool { return k.controller.Refused() == nil && k.controller.Forbidden() == nil })
	k.stop()
	follower.stop()

	for i := range rules {
		rules[i].Verbs = []string{"get", "list", "watch"}
	}
	allow(rules)
	later := controller("a.forbidden.example.com", "b.forbidden.example.com")
	later.ca = k.bundle()
	recorder := events.NewFakeRecorder(10)
	later.options.Events = recorder
	later.start()
	later.eventually("may not write", func() bool { return apierrors.IsForbidden(later.controller.Forbidden()) })
	later.eventually("what stands leads here", func() bool { return later.controller.Refused() == nil })
	if value := later.metric("sallyport_registration_registered"); value != 0 {
		t.Errorf("sallyport_registration_registered is %v", value)
	}
	select {
	case event := <-recorder.Events:
		if !strings.Contains(event, "RegistrationForbidden") {
			t.Errorf("event %s", event)
		}
	case <-time.After(patience):
		t.Error("no event")
	}
	later.stop()

	other := controller("a.forbidden.example.com") // with an authority that nothing in the cluster knows
	other.start()
	other.eventually("what stands leads elsewhere", func() bool { return apierrors.IsForbidden(other.controller.Refused()) })
}
