// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/lint"
)

var (
	chainOutputs    = []string{"text", "json"}
	chainOperations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}
)

type chainOptions struct {
	clusterOptions
	namespace string
	name      string
	file      string
	with      []string
	operation string
	user      string
	groups    []string
	all       bool
	output    string
}

func newChainCommand() *cobra.Command {
	o := chainOptions{}
	cmd := &cobra.Command{
		Use:   "chain RESOURCE [-n NAMESPACE] [-f FILE]",
		Short: "Say which webhooks and policies see an object, in the order of the API server",
		Long: "Chain names the policies and webhooks that the API server asks about a request, in the order in\n" +
			"which it comes to them, with failure policy, timeout, and what lets the request in or keeps it out:\n" +
			"rules, selectors and match conditions, which are evaluated as the API server does.\n\n" +
			"RESOURCE is what kubectl takes, such as pods, deployments.apps or pods/eviction. Without -f nothing is\n" +
			"known of the object, and what depends on it is answered by maybe. The object is judged as the file\n" +
			"has it: defaults of the API server are not filled in.",
		Example: "  sallyport chain pods -n team-a -f pod.yaml\n" +
			"  sallyport chain deployments.apps -n team-a --operation UPDATE --as alice --all\n" +
			"  sallyport chain pods -n team-a -f pod.yaml --with manifests/ --output json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes one argument, the resource, such as pods or deployments.apps; got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return o.run(ctx, cmd, args[0])
		},
	}
	flags := cmd.Flags()
	addFlagGroup(cmd, "Request", func() {
		flags.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` of the object; empty for the one that the file names, or default")
		flags.StringVarP(&o.file, "filename", "f", "", "`file` with the object, YAML or JSON, or - for stdin; for UPDATE and DELETE it is the old object too")
		cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
		flags.StringVar(&o.name, "name", "", "`name` of the object, if there is no file")
		flags.StringVar(&o.operation, "operation", chainOperations[0], "`operation` that is asked for: "+cli.OneOf(chainOperations))
		cli.CompleteChoices(cmd, "operation", chainOperations)
		flags.StringVar(&o.user, "as", "", "`name` of the user who asks; empty if it is not known")
		flags.StringArrayVar(&o.groups, "as-group", nil, "`name` of a group of that user; may be repeated")
	})
	addFlagGroup(cmd, "Webhooks and policies", func() {
		flags.StringArrayVar(&o.with, "with", nil, "`file` or folder with webhook configurations, policies, definitions and namespaces, which are looked at instead of a cluster; may be repeated")
		cli.CompleteFiles(cmd, "with", manifest.Extensions...)
	})
	o.addFlags(cmd)
	addFlagGroup(cmd, "Output", func() {
		flags.BoolVar(&o.all, "all", false, "print also those that no rule or selector lets in")
		flags.StringVarP(&o.output, "output", "o", chainOutputs[0], "`format` of the output: "+cli.OneOf(chainOutputs))
		cli.CompleteChoices(cmd, "output", chainOutputs)
	})
	return cmd
}

func (o *chainOptions) validate() error {
	errs := []error{cli.Choice("operation", o.operation, chainOperations), cli.Choice("output", o.output, chainOutputs)}
	if len(o.with) > 0 && (o.kubeconfig != "" || o.context != "") {
		errs = append(errs, errors.New("--with takes the place of a cluster: leave out --kubeconfig and --context"))
	}
	return errors.Join(append(errs, manifest.StdinOnce(append(slices.Clone(o.with), o.file)))...)
}

func (o *chainOptions) run(ctx context.Context, cmd *cobra.Command, argument string) error {
	if err := o.validate(); err != nil {
		return err
	}
	given, err := o.object(cmd.InOrStdin())
	if err != nil {
		return err
	}
	argument, subresource, _ := strings.Cut(argument, "/")
	var source chainSource
	if len(o.with) > 0 {
		source, err = chainFromFiles(o.with, cmd.InOrStdin())
	} else {
		source, err = o.chainFromCluster(ctx)
	}
	if err != nil {
		return err
	}
	found, err := source.find(argument)
	if err != nil {
		return err
	}
	request, err := o.request(found, subresource, given)
	if err != nil {
		return err
	}
	request.NamespaceLabels, err = source.labels(ctx, request.Namespace)
	if err != nil {
		return err
	}
	request.KubernetesMinor = source.minor
	result := chainResult{
		Resource: found.resource.GroupResource().String(), Version: found.resource.Version, Subresource: subresource, Operation: o.operation,
		Namespace: request.Namespace, Chain: source.inventory.Chain(ctx, request), Unread: mergeSkipped(source.inventory.Unread()),
	}
	if o.output == "json" {
		return result.printJSON(cmd.OutOrStdout())
	}
	return result.printText(cmd.OutOrStdout(), o.all)
}

// object is the one of --filename; nil if there is no such flag.
func (o *chainOptions) object(stdin io.Reader) (*manifest.Object, error) {
	if o.file == "" {
		return nil, nil
	}
	objects, err := manifest.ReadPath(o.file, stdin)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s holds %d objects: chain is about one", o.file, len(objects))
	}
	return objects[0], nil
}

// request is what the API server is asked.
func (o *chainOptions) request(of foundResource, subresource string, given *manifest.Object) (lint.Request, error) {
	r := lint.Request{
		Operation: admissionregistrationv1.OperationType(o.operation), Resource: of.resource, Subresource: subresource, Kind: of.kind,
		Namespace: o.namespace, Name: o.name, User: o.user, Groups: o.groups, Equivalents: of.equivalents,
	}
	if given != nil {
		if gvk := given.GVK(); gvk.Group != of.kind.Group || gvk.Kind != of.kind.Kind {
			return r, fmt.Errorf("%s: %s is no %s: name the resource that the file is about", given.At(), given.Title(), of.resource.GroupResource())
		}
		// The version of the file is that of the request.
		r.Kind, r.Resource = given.GVK(), given.GVK().GroupVersion().WithResource(of.resource.Resource)
		r.Equivalents = append(r.Equivalents, of.resource)
		if given.Namespace != "" && r.Namespace != "" && given.Namespace != r.Namespace {
			return r, fmt.Errorf("%s is in namespace %s, and --namespace says %s", given.Title(), given.Namespace, r.Namespace)
		}
		if r.Namespace == "" {
			r.Namespace = given.Namespace
		}
		r.Name = given.Name
		var value map[string]any
		if err := utiljson.Unmarshal(given.Raw, &value); err != nil { // integers stay integers
			return r, given.ErrorAt("", err.Error())
		}
		if o.operation != "DELETE" {
			r.Object = value
		}
		if o.operation == "UPDATE" || o.operation == "DELETE" {
			r.OldObject = value
		}
	}
	switch {
	case of.resource.Group == "" && of.resource.Resource == "namespaces":
		r.Namespace = r.Name // as the API server has it
	case !of.namespaced:
		if o.namespace != "" {
			return r, fmt.Errorf("%s are in no namespace: leave out --namespace", of.resource.GroupResource())
		}
	case r.Namespace == "":
		r.Namespace = metav1.NamespaceDefault
	}
	if r.Object != nil && r.Namespace != "" && of.namespaced {
		if meta, ok := r.Object["metadata"].(map[string]any); ok {
			meta["namespace"] = r.Namespace
		}
	}
	return r, nil
}

// chainSource is where webhooks, policies and namespaces come from.
type chainSource struct {
	inventory *lint.Inventory
	minor     int // of the cluster's version; 0 if it is not known
	find      func(string) (foundResource, error)
	labels    func(context.Context, string) (map[string]string, error)
}

func chainFromFiles(paths []string, stdin io.Reader) (chainSource, error) {
	objects, err := manifest.Read(paths, stdin)
	if err != nil {
		return chainSource{}, err
	}
	all := make([]lint.Object, len(objects))
	for i, object := range objects {
		all[i] = forLint(object)
	}
	inventory, err := lint.ReadFiles(all)
	if err != nil {
		return chainSource{}, err
	}
	known, err := resourcesOfFiles(objects)
	if err != nil {
		return chainSource{}, err
	}
	return chainSource{
		inventory: inventory, find: known.find,
		labels: func(context.Context, string) (map[string]string, error) { return nil, nil },
	}, nil
}

// chainKinds are those that decide about a request.
func chainKinds() []schema.GroupVersionKind {
	return slices.DeleteFunc(lint.Kinds(), func(gvk schema.GroupVersionKind) bool {
		return gvk.Group != admissionregistrationv1.GroupName
	})
}

func (o *chainOptions) chainFromCluster(ctx context.Context) (chainSource, error) {
	config, err := o.clientConfig()
	if err != nil {
		return chainSource{}, err
	}
	inventory, err := readCluster(ctx, config, chainKinds())
	if err != nil {
		return chainSource{}, err
	}
	known, err := resourcesOfCluster(config)
	if err != nil {
		return chainSource{}, err
	}
	minor, err := minorOfCluster(config)
	if err != nil {
		return chainSource{}, err
	}
	return chainSource{inventory: inventory, minor: minor, find: known.find, labels: func(ctx context.Context, name string) (map[string]string, error) {
		return namespaceLabels(ctx, config, name)
	}}, nil
}

// minorOfCluster is the N of Kubernetes 1.N; 0 if the API server names it otherwise.
func minorOfCluster(config *rest.Config) (int, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, err
	}
	info, err := client.ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("asking the API server for its version: %w", err)
	}
	version, err := utilversion.ParseGeneric(info.GitVersion)
	if err != nil || version.Major() != 1 {
		return 0, nil //nolint:nilerr // of a vendor's own numbers nothing follows
	}
	return int(version.Minor()), nil //nolint:gosec // it is small
}

// namespaceLabels are nil if there is no such namespace, or if it may not be read.
func namespaceLabels(ctx context.Context, config *rest.Config, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	namespace, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	return namespace.GetLabels(), nil
}

// chainResult is what chain prints.
type chainResult struct {
	Resource    string         `json:"resource"`
	Version     string         `json:"version"`
	Subresource string         `json:"subresource,omitempty"`
	Operation   string         `json:"operation"`
	Namespace   string         `json:"namespace,omitempty"`
	Chain       []lint.Link    `json:"chain"`
	Unread      []lint.Skipped `json:"unread,omitempty"`
}

func (r *chainResult) printJSON(out io.Writer) error {
	if r.Chain == nil {
		r.Chain = []lint.Link{}
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// phaseTitles say how the API server goes through a phase.
var phaseTitles = map[lint.Phase]string{
	lint.MutatingPolicies:   "Mutating policies, one after the other",
	lint.MutatingWebhooks:   "Mutating webhooks, one after the other",
	lint.ValidatingPolicies: "Validating policies, one after the other",
	lint.ValidatingWebhooks: "Validating webhooks, all at the same time",
}

func (r *chainResult) printText(out io.Writer, all bool) error {
	var text strings.Builder
	name := r.Resource
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	fmt.Fprintf(&text, "%s %s", r.Operation, manifest.Printable(name))
	if r.Namespace != "" {
		fmt.Fprintf(&text, " in namespace %s", manifest.Printable(r.Namespace))
	}
	text.WriteString("\n")
	number, left := 0, 0
	var again []string
	worst := int32(0)
	for _, phase := range lint.Phases() {
		titled, longest := false, int32(0)
		for _, link := range r.Chain {
			if link.Phase != phase {
				continue
			}
			if link.Answer == lint.Out && !all {
				left++
				continue
			}
			if !titled {
				fmt.Fprintf(&text, "\n%s:\n", phaseTitles[phase])
				titled = true
			}
			position := "-"
			if link.Answer != lint.Out {
				number++
				position = fmt.Sprint(number)
				if phase == lint.MutatingWebhooks {
					worst += link.TimeoutSeconds
				} else {
					longest = max(longest, link.TimeoutSeconds)
				}
				if link.Reinvoked {
					again = append(again, position)
				}
			}
			fmt.Fprintf(&text, "%4s  %-8s%s  %s\n", position, link.Answer, manifest.Printable(link.Name), describe(link))
			fmt.Fprintf(&text, "              %s\n", manifest.Printable(oneLine(link.Why)))
		}
		worst += longest
	}
	if number == 0 {
		text.WriteString("\nNobody is asked.\n")
	}
	if len(again) > 0 {
		fmt.Fprintf(&text, "\nOnce more, if another one has changed the object after it: %s\n", strings.Join(again, ", "))
	}
	if worst > 0 {
		fmt.Fprintf(&text, "\nIf no server answers, this takes up to %d s.\n", worst)
	}
	if left > 0 {
		fmt.Fprintf(&text, "%s not asked: --all says why.\n", pluralVerb(left, "is", "are"))
	}
	for _, line := range skippedLines(r.Unread) {
		fmt.Fprintf(&text, "not known: %s\n", manifest.Printable(line))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func pluralVerb(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// describe is failure policy, timeout and what else is to know.
func describe(link lint.Link) string {
	parts := []string{link.FailurePolicy}
	if link.TimeoutSeconds > 0 {
		parts = append(parts, fmt.Sprintf("%d s", link.TimeoutSeconds))
	}
	if link.Server != "" {
		parts = append(parts, link.Server)
	}
	if len(link.Actions) > 0 {
		parts = append(parts, strings.Join(link.Actions, "+"))
	}
	if link.Sent != "" {
		parts = append(parts, "as "+link.Sent)
	}
	if link.Static {
		parts = append(parts, "static manifest")
	}
	return "(" + manifest.Printable(strings.Join(parts, ", ")) + ")"
}
