// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/install/deployment"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/registration"
)

// uninstallOptions say what to remove, and from where.
type uninstallOptions struct {
	authorityFlags
	directory  string
	conversion bool
	crds       []string
	all        bool
	dryRun     bool
	yes        bool
	force      bool
}

func newUninstallCommand() *cobra.Command {
	o := uninstallOptions{authorityFlags: newAuthorityFlags()}
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
		Args:    noArguments("everything is said by flags"),
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE:    interruptible(o.run),
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
		errs = append(errs, o.authorityFlags.validate())
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

func (o *uninstallOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
	u := deployment.Uninstall{Name: o.registration.Name, Directory: o.directory, Conversions: o.crds}
	if o.directory == "" || o.conversion || o.named() {
		authority, err := o.authority()
		if err != nil {
			return err
		}
		if err := u.In(authority.Cluster); err != nil {
			return err
		}
		if o.all {
			u.Authority = &authority
		}
		if o.named() && !o.force {
			if err := deployment.CheckNobodyLeads(ctx, authority, time.Now()); err != nil {
				return err
			}
		}
	}
	in := cmd.InOrStdin()
	if file, ok := in.(*os.File); ok && !o.dryRun && !o.yes && term.IsTerminal(int(file.Fd())) {
		planned, err := u.Remove(ctx, true)
		if err != nil {
			return err
		}
		if agreed, err := confirm(planned, in, cmd.ErrOrStderr()); err != nil || !agreed {
			return err
		}
	}
	removals, err := u.Remove(ctx, o.dryRun)
	return errors.Join(printRemovals(cmd.OutOrStdout(), removals, o.dryRun), err)
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
