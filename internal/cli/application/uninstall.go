// SPDX-License-Identifier: Apache-2.0

package application

import (
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
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// Uninstaller describes the server that the command uninstall removes.
type Uninstaller struct {
	// Name is the name of an application; empty if Long and Example are set.
	Name string
	// Long and Example are help texts.
	Long, Example string
	// Flags have the server's defaults.
	Flags clusterflags.AuthorityFlags
	// CRDs names the definitions whose conversion the server writes, if they are known.
	// Otherwise a flag names them.
	CRDs []string
	// Leases and Also are fields of [install.Uninstall].
	Leases []string
	Also   func(ctx context.Context, config *rest.Config, dryRun bool) ([]registration.Removal, error)
}

// uninstallOptions select what to remove, and from which cluster.
type uninstallOptions struct {
	clusterflags.AuthorityFlags
	of          Uninstaller
	directories []string
	conversion  bool
	crds        []string
	all         bool
	dryRun      bool
	yes         bool
	force       bool
}

// UninstallOf returns the command uninstall of an application. With --all it also removes what
// the application stores beside its authority.
func UninstallOf(a install.Application) *cobra.Command {
	chosen := install.Chosen{Converters: a.Converters}
	return Uninstall(Uninstaller{
		Name: a.Name, CRDs: chosen.Converted(), Leases: install.Leases(a.Name),
		Flags: clusterflags.AuthorityFlags{Flags: clusterflags.Flags{UserAgent: a.Name + "/" + a.Version}, AuthoritySettings: clusterflags.AuthoritySettings{Registration: *a.Registration, Certificate: *a.Certificate}},
	})
}

// Uninstall returns the command uninstall of a server.
func Uninstall(of Uninstaller) *cobra.Command {
	if of.Name != "" {
		of.describe()
	}
	o := uninstallOptions{AuthorityFlags: of.Flags, of: of, crds: of.CRDs}
	cmd := &cobra.Command{
		Use:          "uninstall --service NAMESPACE/NAME | --static-manifests-dir DIRECTORY",
		Short:        "Remove the registration of a server",
		Long:         of.Long,
		Example:      of.Example,
		Args:         cli.NoArguments("use flags"),
		PreRunE:      func(*cobra.Command, []string) error { return o.validate() },
		RunE:         cli.Interruptible(o.run),
		SilenceUsage: true,
	}
	cmd.SetUsageFunc(cli.PrintUsage)
	o.AddFlags(cmd)
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Removal", func() {
		flags.StringVar(&o.Registration.Name, "configuration-name", o.Registration.Name, "`name` of the webhook configurations")
		flags.StringArrayVar(&o.directories, "static-manifests-dir", nil, "`directory` of static admission manifests to remove instead of the webhook configurations in the cluster; may be repeated")
		cli.CompleteFolders(cmd, "static-manifests-dir")
		if len(of.CRDs) > 0 {
			flags.BoolVar(&o.conversion, "conversion", false, "set the conversion strategy of "+strings.Join(of.CRDs, ", ")+" to None; only correct if their versions have the same schema")
		} else {
			flags.BoolVar(&o.conversion, "conversion", false, "set the conversion strategy of the CustomResourceDefinitions of --crd to None; only correct if their versions have the same schema")
			flags.StringSliceVar(&o.crds, "crd", nil, "`names` of the CustomResourceDefinitions for --conversion, such as crontabs.example.com")
		}
		flags.BoolVar(&o.all, "all", false, "also remove the Secret of the authority and the leases of the server")
	})
	cli.AddFlagGroup(cmd, "Execution", func() {
		flags.BoolVar(&o.dryRun, "dry-run", false, "change nothing: print what would be removed; the API server validates the requests without storing them")
		flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation on a terminal")
		flags.BoolVar(&o.force, "force", false, "skip a safety check: remove even if a server is running, which will register its webhooks again")
	})
	return cmd
}

// describe sets the help of an application.
func (u *Uninstaller) describe() {
	u.Long = "Remove the webhook configurations that a server wrote: its own webhooks only, or the whole objects if they\n" +
		"contain no others. With --static-manifests-dir, remove the static manifests instead. With --all, also remove\n" +
		"the authority and the leases.\n\n" +
		"A running server would write them again, so scale it down first: nothing is removed while a server holds\n" +
		"the lease of its authority. Remove the output of '" + u.Name + " manifests' with kubectl delete."
	service := " --service " + u.Name + "-system/" + u.Name
	u.Example = "  kubectl --namespace " + u.Name + "-system scale deployment " + u.Name + " --replicas 0\n" +
		"  " + u.Name + " uninstall" + service + " --all --dry-run\n" +
		"  " + u.Name + " uninstall" + service + " --all --yes"
}

func (o *uninstallOptions) validate() error {
	var errs []error
	switch {
	case o.Named():
		errs = append(errs, o.AuthorityFlags.Validate())
	case o.all:
		errs = append(errs, errors.New("--all requires --service or --authority-secret: use the value that the server runs with"))
	case len(o.directories) == 0 && !o.force:
		errs = append(errs, errors.New("--service or --authority-secret is required to check whether a server still runs: use the value that the server runs with; "+
			"if its authority is not in a Secret, stop the server and set --force"))
	}
	named := registration.Config{Name: o.Registration.Name, Endpoint: registration.Endpoint{URL: "https://127.0.0.1"}}
	if err := named.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--configuration-name: %w", err))
	}
	for _, directory := range o.directories {
		if !filepath.IsAbs(directory) {
			errs = append(errs, fmt.Errorf("--static-manifests-dir %q: must be an absolute path", directory))
		}
	}
	if len(o.of.CRDs) == 0 && o.conversion != (len(o.crds) > 0) {
		errs = append(errs, errors.New("--conversion and --crd must be used together"))
	}
	for _, crd := range o.crds {
		for _, problem := range validation.NameIsDNSSubdomain(crd, false) {
			errs = append(errs, fmt.Errorf("--crd %q: %s", crd, problem))
		}
	}
	return errors.Join(errs...)
}

func (o *uninstallOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
	u := install.Uninstall{Name: o.Registration.Name, Directories: o.directories, Leases: o.of.Leases, Also: o.of.Also}
	if o.conversion {
		u.Conversions = o.crds
	}
	if len(o.directories) == 0 || o.conversion || o.Named() {
		authority, err := o.Authority()
		if err != nil {
			return err
		}
		u.Clients = authority.Clients
		if o.all {
			u.Authority = &authority
		}
		if o.Named() && !o.force {
			if err := install.CheckNoLeader(ctx, authority, time.Now()); err != nil {
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

// confirm prints the planned removals and asks for confirmation, unless there are none.
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
	agreed, err := cli.Confirm(in, out, "Continue?")
	if err == nil && !agreed {
		_, err = io.WriteString(out, "nothing was removed\n")
	}
	return agreed, err
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
