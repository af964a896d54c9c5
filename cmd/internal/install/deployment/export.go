// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/export"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Policies converts the PodDefaults in files to policies. The error lists every object that is
// not a PodDefault, and every PodDefault that policies cannot express.
func Policies(files []string, stdin io.Reader, settings poddefault.Settings) (*export.Exported, error) {
	objects, err := manifest.Read(files, stdin)
	if err != nil {
		return nil, err
	}
	pds, err := decodePodDefaults(objects)
	if err == nil && len(pds) == 0 {
		err = fmt.Errorf("%s: there is no PodDefault: the lists are empty", strings.Join(files, ", "))
	}
	exported, errExport := export.Export(pds, settings)
	return exported, errors.Join(err, errExport)
}

func decodePodDefaults(objects []*manifest.Object) ([]*kubeflowv1alpha1.PodDefault, error) {
	var out []*kubeflowv1alpha1.PodDefault
	var errs []error
	for _, object := range objects {
		switch object.GVK() {
		case kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind):
			pd := &kubeflowv1alpha1.PodDefault{}
			if err := object.DecodeStrict(pd); err != nil {
				errs = append(errs, err)
				continue
			}
			out = append(out, pd)
		case sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind):
			errs = append(errs, object.ErrorAt("",
				object.Title()+": policies are written for PodDefaults alone: make a PodDefault of it in each namespace, or use the webhook"))
		default:
			errs = append(errs, object.ErrorAt("", fmt.Sprintf("%s of %s is not a PodDefault", object.Title(), object.APIVersion)))
		}
	}
	return out, errors.Join(errs...)
}

// PolicyPlugins are kube-apiserver's plugins that read policies from static manifests, each from a directory of its own.
var PolicyPlugins = []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"}

// StaticPolicies returns the policies and bindings of a plugin as static admission manifests (KEP-5793), which have names of
// their own. They have no parameters, which are not allowed there.
func StaticPolicies(exported *export.Exported, plugin string) *export.Exported {
	const suffix = ".static.k8s.io"
	out := &export.Exported{Notes: append(slices.Clone(exported.Notes), "kube-apiserver reads this as a static manifest, since 1.37: pass the directory as staticManifestsDir of its plugin "+plugin)}
	for _, object := range exported.Objects {
		if !strings.HasPrefix(object.GetObjectKind().GroupVersionKind().Kind, plugin) {
			continue
		}
		switch o := object.(type) {
		case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			o.Spec.PolicyName += suffix
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			o.Spec.PolicyName += suffix
		}
		named := object.(metav1.Object)
		named.SetName(named.GetName() + suffix)
		out.Objects = append(out.Objects, object)
	}
	return out
}

// PrintPolicies prints the notes as comments above the objects.
func PrintPolicies(out io.Writer, exported *export.Exported) error {
	text := "# PodDefaults as policies, written by sallyport export. What they do otherwise than the webhook:\n"
	for _, line := range exported.Notes {
		if continued, ok := strings.CutPrefix(line, "  "); ok {
			text += "#   " + continued + "\n"
			continue
		}
		text += "# - " + line + "\n"
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	return cli.PrintYAML(out, exported.Objects)
}
