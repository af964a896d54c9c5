// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/server"
	"github.com/sallyport-io/sallyport/registration"
)

// The parts of what is installed.
const (
	partNamespace      = "namespace"
	partCRD            = "crd"
	partRBAC           = "rbac"
	partFlowControl    = "flowcontrol"
	partWorkload       = "workload"
	partConfigurations = "configurations"
)

var (
	manifestParts = []string{partNamespace, partCRD, partRBAC, partFlowControl, partWorkload, partConfigurations}
	// usualParts are those that need to know nothing of who runs the server.
	usualParts = []string{partCRD, partRBAC, partFlowControl, partConfigurations}
)

type manifestsOptions struct {
	parts          []string
	serviceAccount string
	caFile         string
	static         bool
	server         *server.Config
	callers        callerManifests
	workload       workloadManifests
	config         string
	mode           string
	files          []string
}

func newManifestsCommand() *cobra.Command {
	o := manifestsOptions{server: server.Default()}
	cmd := &cobra.Command{
		Use:   "manifests --service NAMESPACE/NAME | --url URL | --mode policy -f FILE",
		Short: "Print what to install in a cluster: CRDs, RBAC, flow control, the server, webhook configurations",
		Long: "Manifests prints YAML for kubectl apply, derived from the same definitions that serve uses. Give it\n" +
			"the flags that serve gets: the rights that it prints are those which such a server needs.\n\n" +
			"A server that registers itself (serve --registration api, the default) needs --part crd,rbac,flowcontrol;\n" +
			"it writes the webhook configurations when it is ready. Print them for --registration none: a\n" +
			"configuration whose server does not answer keeps pods from being created.\n\n" +
			"With --mode policy it prints no server at all, but the PodDefaults of files as policies that the API server\n" +
			"of Kubernetes 1.36 or later evaluates itself. What they cannot do stands above them in comments; for a\n" +
			"PodDefault that would silently do something else than by the webhook there is an error.",
		Example: "  # all that a server in a cluster needs, which registers itself\n" +
			"  sallyport manifests --service sallyport-system/sallyport --part namespace,crd,rbac,flowcontrol,workload \\\n" +
			"    --image registry.example.com/sallyport:v1 | kubectl apply -f -\n\n" +
			"  # for a server that registers itself, and runs already\n" +
			"  sallyport manifests --service sallyport-system/webhooks --part crd,rbac,flowcontrol | kubectl apply -f -\n\n" +
			"  # once a server with --registration none is up\n" +
			"  sallyport manifests --service sallyport-system/webhooks --part configurations --ca-file ca.crt | kubectl apply -f -\n\n" +
			"  # injection by the API server itself\n" +
			"  kubectl get poddefaults -A -o yaml | sallyport manifests --mode policy -f - | kubectl apply -f -",
		Args: noArguments("choose by --part what is printed"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := server.Load(o.config, cmd.Flags(), server.OfDeployment...)
			if config == nil {
				return err
			}
			o.server = config
			if handled, errPolicy := o.runPolicyMode(cmd); handled {
				return errors.Join(err, errPolicy)
			}
			if err := errors.Join(err, o.validate()); err != nil {
				return err
			}
			return o.run(cmd.OutOrStdout(), cmd.Flags())
		},
	}
	flags := cmd.Flags()
	addFlagGroup(cmd, "What is printed", func() {
		flags.StringSliceVar(&o.parts, "part", usualParts, "`parts` to print, of "+strings.Join(manifestParts, ", ")+"; may be repeated")
		cli.CompleteChoices(cmd, "part", manifestParts)
		o.addModeFlags(cmd)
	})
	addFlagGroup(cmd, "Server", func() {
		addConfigFlag(cmd, &o.config)
		addServerFlags(cmd, o.server, "service", "url")
		flags.StringVar(&o.serviceAccount, "service-account", "sallyport", "`name` of the server's service account, in the namespace of --service")
		addServerFlags(cmd, o.server, "registration", "owner", "certificate-source", "authority-secret", "leader-elect", "webhooks", "controllers")
	})
	addFlagGroup(cmd, "Workload", func() { o.workload.addFlags(cmd) })
	addFlagGroup(cmd, "Callers", func() {
		addServerFlags(cmd, o.server, "authentication", "metrics-authentication")
		o.callers.addFlags(cmd)
	})
	addFlagGroup(cmd, "Webhook configurations", func() {
		addServerFlags(cmd, o.server, "configuration-name", "namespace-selector", "failure-policy")
		flags.StringVar(&o.caFile, "ca-file", "", "`file` with what the API server shall trust, PEM, for the caBundle; empty if somebody else writes it")
		cli.CompleteFiles(cmd, "ca-file")
		flags.BoolVar(&o.static, "static", false,
			"print static admission manifests, which kube-apiserver reads from files; needs --url and --part configurations")
	})
	return cmd
}

// validate reports every problem of what the configuration does not say. The CRDs depend on
// no flag of the server.
func (o *manifestsOptions) validate() error {
	var errs []error
	if len(o.parts) == 0 {
		errs = append(errs, fmt.Errorf("--part is empty: choose %s", cli.OneOf(manifestParts)))
	}
	for _, part := range o.parts {
		errs = append(errs, cli.Choice("part", part, manifestParts))
	}
	inCluster := o.server.Registration.Service != ""
	if !inCluster && o.server.Registration.URL == "" && slices.ContainsFunc(o.parts, func(part string) bool { return part != partCRD }) {
		errs = append(errs, errors.New("--service or --url is needed: the API server must know where the webhooks are"))
	}
	if o.static && !slices.Equal(o.parts, []string{partConfigurations}) {
		errs = append(errs, errors.New("--static prints webhook configurations only: add --part configurations"))
	}
	if o.static && inCluster {
		errs = append(errs, errors.New("--static needs --url: kube-apiserver takes no Service in static manifests"))
	}
	if slices.Contains(o.parts, partWorkload) {
		errs = append(errs, o.workload.validate(o))
	}
	if slices.Contains(o.parts, partNamespace) && !inCluster {
		errs = append(errs, errors.New("--part namespace needs --service, which says which one it is"))
	}
	errs = append(errs, o.callers.validate())
	if o.static && o.server.Settings.PodDefault.Guard == server.GuardBackstop {
		errs = append(errs, errors.New("the guard Backstop of poddefault is not for --static: static manifests hold no policy with a parameter"))
	}
	for _, problem := range validation.IsDNS1123Subdomain(o.serviceAccount) {
		errs = append(errs, fmt.Errorf("--service-account %q: %s", o.serviceAccount, problem))
	}
	return errors.Join(errs...)
}

func (o *manifestsOptions) run(out io.Writer, given *pflag.FlagSet) error {
	config := o.registration()
	var objects []runtime.Object
	if slices.Contains(o.parts, partNamespace) {
		objects = append(objects, namespaceManifest(config.Endpoint.Service.Namespace))
	}
	if slices.Contains(o.parts, partCRD) && o.server.Has("poddefault") { // whose CRDs they are
		crds, err := crd.All()
		if err != nil {
			return err
		}
		for _, definition := range crds {
			objects = append(objects, definition)
		}
	}
	if slices.Contains(o.parts, partRBAC) {
		objects = append(objects, serverRights(o.server, o.serviceAccount).Objects()...)
		rights, err := o.callers.rights(config, o.serviceAccount, o.server)
		if err != nil {
			return err
		}
		objects = append(objects, rights...)
	}
	if slices.Contains(o.parts, partFlowControl) {
		objects = append(objects, flowControl(config, o.serviceAccount)...)
	}
	if o.callers.networkPolicy && (slices.Contains(o.parts, partWorkload) || given.Changed("network-policy") || len(o.callers.cidrs) > 0) {
		policies, err := o.callers.policy(config, o.workload.podLabels(o))
		if err != nil {
			return err
		}
		objects = append(objects, policies...)
	}
	if slices.Contains(o.parts, partWorkload) {
		workload, err := o.workload.objects(o, given)
		if err != nil {
			return err
		}
		objects = append(objects, workload...)
	}
	if slices.Contains(o.parts, partConfigurations) {
		configurations, err := o.configurations()
		if err != nil {
			return err
		}
		objects = append(objects, configurations...)
	}
	return cli.PrintYAML(out, objects)
}

func (o *manifestsOptions) configurations() ([]runtime.Object, error) {
	caBundle, err := cli.ReadCABundle("ca-file", o.caFile)
	if err != nil {
		return nil, err
	}
	defined, settings := *o.server, o.server.AppRegistration()
	if defined.Settings.PodDefault.Guard == "" { // whether the API server has such policies is not known here
		defined.Settings.PodDefault.Guard = server.GuardFail
	}
	webhooks, err := defined.Define(server.NoSources())
	if err != nil {
		return nil, err
	}
	if webhooks, err = settings.Apply(webhooks); err != nil {
		return nil, err
	}
	if o.static {
		return registration.StaticManifests(settings.Config(), webhooks, caBundle)
	}
	return registration.Manifests(settings.Config(), webhooks, caBundle)
}

// registration is what the configuration says about the configuration objects.
func (o *manifestsOptions) registration() registration.Config {
	settings := o.server.AppRegistration()
	return settings.Config()
}
