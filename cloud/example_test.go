// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cloud"
)

// zoned labels Services with the zone of the cloud.
func zoned(d cloud.Dependencies) (admission.Handler, error) {
	return admission.Mutate(func(ctx context.Context, service *corev1.Service) error {
		zones, ok := d.Cloud.Zones()
		if !ok {
			return nil
		}
		zone, err := zones.GetZone(ctx)
		if err != nil {
			return err // a fault, for which the failure policy is
		}
		if service.Labels == nil {
			service.Labels = map[string]string{}
		}
		service.Labels[corev1.LabelTopologyZone] = zone.FailureDomain
		return nil
	}), nil
}

// A cloud controller manager hosts a webhook of its own. It prints the configuration that it would register.
func Example() {
	webhooks, err := cloud.New()
	if err == nil {
		err = webhooks.Register("zoned", []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Service")}, zoned, cloud.WithInitializedCloud())
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	ccm, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		fmt.Println(err)
		return
	}
	initialize := func(*config.CompletedConfig) cloudprovider.Interface { return nil } // that of your cloud
	command, err := webhooks.Command(ccm, initialize, app.DefaultInitFuncConstructors, names.CCMControllerAliases(), cliflag.NamedFlagSets{}, wait.NeverStop)
	if err != nil {
		fmt.Println(err)
		return
	}
	command.SetOut(os.Stdout)
	command.SetArgs([]string{"--webhooks=zoned", "--webhook-service=kube-system/ccm", "--print-webhook-configuration"})
	if err := command.Execute(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// apiVersion: admissionregistration.k8s.io/v1
	// kind: MutatingWebhookConfiguration
	// metadata:
	//   labels:
	//     app.kubernetes.io/managed-by: sallyport
	//   name: cloud-webhooks
	// webhooks:
	// - admissionReviewVersions:
	//   - v1
	//   - v1beta1
	//   clientConfig:
	//     service:
	//       name: ccm
	//       namespace: kube-system
	//       path: /zoned
	//       port: 443
	//   failurePolicy: Ignore
	//   matchPolicy: Equivalent
	//   name: zoned.cloud.sallyport.io
	//   reinvocationPolicy: IfNeeded
	//   rules:
	//   - apiGroups:
	//     - ""
	//     apiVersions:
	//     - v1
	//     operations:
	//     - CREATE
	//     - UPDATE
	//     resources:
	//     - services
	//   sideEffects: None
	//   timeoutSeconds: 10
}
