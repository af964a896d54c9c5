// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/registration"
)

// uninstallOptions say what to remove, and from where.
type uninstallOptions struct {
	certificatesOptions
	directory  string
	conversion bool
	crds       []string
	all        bool
	dryRun     bool
	yes        bool
	force      bool
}

func newUninstallCommand() *cobra.Command {
	o := uninstallOptions{certificatesOptions: newCertificatesOptions()}
	cmd := &cobra.Command{
		Use:   "uninstall --service NAMESPACE/NAME | --static-manifests-dir DIRECTORY",
		Short: "Remove what a server has registered",
		Long: "Uninstall removes the policy that stands in for PodDefault injection and what it reads, and the\n" +
			"webhook configurations that a server has written: its own webhooks only, and the objects if nothing of\n" +
			"others is left in them. With --static-manifests-dir it removes the static manifests instead.\n\n" +
			"A server that still runs would write them again. Scale it down first: as long as one holds the lease\n" +
			"beside its authority, nothing is removed. What 'sallyport manifests' printed, kubectl delete removes,\n" +
			"and after this: a policy whose CustomResourceDefinition is gone refuses every pod.",
		Example: "  kubectl --namespace sallyport-system scale deployment sallyport --replicas 0\n" +
			"  sallyport uninstall --service sallyport-system/sallyport --all --dry-run\n" +
			"  sallyport uninstall --service sallyport-system/sallyport --all --yes",
		Args: noArguments("everything is said by flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return o.run(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	addFlagGroup(cmd, "What is removed", func() {
		flags.StringVar(&o.registration.Name, "configuration-name", o.registration.Name, "`name` of the webhook configurations")
		flags.StringVar(&o.directory, "static-manifests-dir", "", "`directory` of the static admission manifests, which are removed instead of the configurations in the cluster")
		cli.CompleteFolders(cmd, "static-manifests-dir")
		flags.BoolVar(&o.conversion, "conversion", false, "set the conversion strategy of the definitions of --crd to None; right only if their versions have one schema")
		flags.StringSliceVar(&o.crds, "crd", nil, "`names` of the CustomResourceDefinitions for --conversion, such as crontabs.example.com")
		flags.BoolVar(&o.all, "all", false, "remove the Secret of the authority too, and the lease beside it")
	})
	addFlagGroup(cmd, "How", func() {
		flags.BoolVar(&o.dryRun, "dry-run", false, "print what would be removed; the API server checks everything and stores nothing")
		flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask, also on a terminal")
		flags.BoolVar(&o.force, "force", false, "also while a server leads, which will register its webhooks again")
	})
	return cmd
}

func (o *uninstallOptions) validate() error {
	var errs []error
	switch {
	case o.named():
		errs = append(errs, o.certificatesOptions.validate())
	case o.all:
		errs = append(errs, errors.New("--all needs --service or --authority-secret: write what the server was given"))
	case o.directory == "" && !o.force:
		errs = append(errs, errors.New("--service or --authority-secret is needed to see whether a server still runs: write what the server was given; "+
			"or, for a server whose authority is in no Secret, end it and add --force"))
	}
	named := registration.Config{Name: o.registration.Name, Endpoint: registration.Endpoint{URL: "https://127.0.0.1"}}
	if err := named.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--configuration-name: %w", err))
	}
	if o.directory != "" && !filepath.IsAbs(o.directory) {
		errs = append(errs, fmt.Errorf("--static-manifests-dir %q: write an absolute path", o.directory))
	}
	if o.conversion != (len(o.crds) > 0) {
		errs = append(errs, errors.New("--conversion and --crd belong together: what, and of which definitions"))
	}
	for _, crd := range o.crds {
		for _, problem := range validation.NameIsDNSSubdomain(crd, false) {
			errs = append(errs, fmt.Errorf("--crd %q: %s", crd, problem))
		}
	}
	return errors.Join(errs...)
}

// named tells whether flags say where the authority and its lease are.
func (o *uninstallOptions) named() bool {
	return o.certificates.Secret != "" || o.registration.Service != ""
}

func (o *uninstallOptions) run(ctx context.Context, in io.Reader, out, messages io.Writer) error {
	u := uninstaller{uninstallOptions: o}
	if o.directory == "" || o.conversion || o.named() {
		config, err := o.clientConfig()
		if err != nil {
			return err
		}
		if u.client, err = kubernetes.NewForConfig(config); err != nil {
			return err
		}
		extensions, err := apiextensionsclient.NewForConfig(config)
		if err != nil {
			return err
		}
		u.crds = extensions.CustomResourceDefinitions()
		if u.metadata, err = metadata.NewForConfig(config); err != nil {
			return err
		}
	}
	if o.named() && !o.force {
		if err := u.checkNobodyLeads(ctx, time.Now()); err != nil {
			return err
		}
	}
	if file, ok := in.(*os.File); ok && !o.dryRun && !o.yes && term.IsTerminal(int(file.Fd())) {
		planned, err := u.remove(ctx, true)
		if err != nil {
			return err
		}
		if agreed, err := confirm(planned, in, messages); err != nil || !agreed {
			return err
		}
	}
	removals, err := u.remove(ctx, o.dryRun)
	return errors.Join(printRemovals(out, removals, o.dryRun), err)
}

// confirm shows what would be done, and asks. Without anything to do there is nothing
// to ask.
func confirm(planned []registration.Removal, in io.Reader, out io.Writer) (bool, error) {
	asks := false
	for _, removal := range planned {
		asks = asks || removal.Action != registration.Left
	}
	if !asks {
		return true, nil
	}
	if err := printRemovals(out, planned, true); err != nil {
		return false, err
	}
	if _, err := io.WriteString(out, "Go ahead? [y/N] "); err != nil {
		return false, err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	_, err = io.WriteString(out, "nothing was removed\n")
	return false, err
}

func printRemovals(out io.Writer, removals []registration.Removal, dryRun bool) error {
	var text strings.Builder
	for _, removal := range removals {
		fmt.Fprintf(&text, "%s %s", manifest.Printable(removal.Object), removal.Action)
		if removal.Why != "" {
			fmt.Fprintf(&text, ": %s", manifest.Printable(removal.Why))
		}
		if dryRun && removal.Action != registration.Left {
			text.WriteString(" (dry run)")
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// uninstaller removes, one thing after the other.
type uninstaller struct {
	*uninstallOptions
	client kubernetes.Interface
	crds   apiextensionsclient.CustomResourceDefinitionInterface
	// metadata is nil where only files are removed.
	metadata metadata.Interface
}

// remove returns what was done before the error, if there is one.
func (u *uninstaller) remove(ctx context.Context, dryRun bool) ([]registration.Removal, error) {
	options := registration.RemoveOptions{Name: u.registration.Name, DryRun: dryRun}
	var out []registration.Removal
	for _, step := range []func() ([]registration.Removal, error){
		func() ([]registration.Removal, error) {
			if u.directory != "" {
				return registration.RemoveStaticManifests(u.directory, options)
			}
			return registration.RemoveConfigurations(ctx, u.client.AdmissionregistrationV1(), options)
		},
		func() ([]registration.Removal, error) { return u.removeIndexes(ctx, dryRun) },
		func() ([]registration.Removal, error) { return u.removeConversions(ctx, options) },
		func() ([]registration.Removal, error) { return u.removeAuthority(ctx, dryRun) },
	} {
		removals, err := step()
		out = append(out, removals...)
		if err != nil {
			return out, withRightsHint(err)
		}
	}
	return out, nil
}

func (u *uninstaller) removeConversions(ctx context.Context, options registration.RemoveOptions) ([]registration.Removal, error) {
	if u.conversion {
		return registration.RemoveConversions(ctx, u.crds, u.uninstallOptions.crds, options)
	}
	if u.crds == nil {
		return nil, nil
	}
	left, err := registration.LeftConversions(ctx, u.crds, options)
	if apierrors.IsForbidden(err) { // it is told for convenience; removing takes no such right
		return nil, nil
	}
	for i := range left {
		left[i].Why += "; --conversion --crd sets the strategy None"
	}
	return left, err
}

// removeAuthority removes the Secret, if it holds an authority, and the lease.
func (u *uninstaller) removeAuthority(ctx context.Context, dryRun bool) ([]registration.Removal, error) {
	if !u.all {
		return nil, nil
	}
	namespace, name := u.secret()
	at := " of namespace " + namespace
	secrets, leases := u.client.CoreV1().Secrets(namespace), u.client.CoordinationV1().Leases(namespace)
	var out []registration.Removal
	options := metav1.DeleteOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		removal := registration.Removal{Object: "secret/" + name + at, Action: registration.Deleted}
		if _, unreadable := certificate.ReadStatus(secret); unreadable != nil {
			removal.Action, removal.Why = registration.Left, "it holds no authority"
		} else {
			options.Preconditions = &metav1.Preconditions{UID: &secret.UID}
			if err := secrets.Delete(ctx, name, options); err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
		out = append(out, removal)
	}
	options.Preconditions = nil
	err = leases.Delete(ctx, name, options)
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	return append(out, registration.Removal{Object: "lease.coordination.k8s.io/" + name + at, Action: registration.Deleted}), nil
}

// checkNobodyLeads returns an error while a server holds the lease.
func (u *uninstaller) checkNobodyLeads(ctx context.Context, now time.Time) error {
	namespace, name := u.secret()
	lease, err := u.client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("to see whether a server still leads: %w; --force goes on without", err)
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return nil
	}
	ends := spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	if !now.Before(ends) {
		return nil
	}
	return fmt.Errorf("%s leads (lease %s/%s) and would register its webhooks again: scale the server down first; "+
		"the lease of one that ended without a word runs out at %s; --force goes on all the same",
		*spec.HolderIdentity, namespace, name, ends.UTC().Format(time.RFC3339))
}

// withRightsHint says what to do about an error that is about rights.
func withRightsHint(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; use the kubeconfig of somebody who may, and run it again: it goes on where it stopped", err)
	}
	return err
}
