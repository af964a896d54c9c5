// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// Init is the command init.
type Init struct {
	Project Project
	Target  Target
	// From is a project whose markers become definitions; empty to write a new project.
	From string
}

// forMarkers are the flags that --from looks at. Others are about a new project.
var forMarkers = []string{"from", "dir", "dry-run", "overwrite"}

// Command returns the command, without its flags.
func (i *Init) Command() *cobra.Command {
	return &cobra.Command{
		Use:   "init MODULE --kind KIND --versions VERSIONS | --from FOLDER",
		Short: "Write a project with webhooks of your own, or definitions from the markers of one that exists",
		Long: "Init writes a Go project around one kind: its types with deep copies and the CustomResourceDefinition,\n" +
			"webhooks that set defaults and validate, conversion between the versions, tests of all of it by themselves\n" +
			"and on a real API server, a Makefile, a Dockerfile and a kustomization. It builds and its tests pass; what the\n" +
			"API is about is yours to fill in.\n\n" +
			"With --from it reads the markers +kubebuilder:webhook of a project that exists, with all arguments of\n" +
			"controller-gen, and writes the webhooks as Go definitions into internal/definitions of that project.\n\n" +
			"Nothing is reached over the network. No file that exists is replaced, unless --overwrite is given.",
		Example: "  sallyport init github.com/me/bookstore --kind Book --versions v1alpha1,v1 --dir bookstore\n" +
			"  sallyport init github.com/me/fleet --kind Ship --versions v1 --group fleet.example.org --scope Cluster --dry-run\n" +
			"  sallyport init --from .",
		Args: i.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if i.From != "" {
				return i.definitions(cmd)
			}
			i.Project.Module = args[0]
			files, err := i.Project.Files()
			if err != nil {
				return err
			}
			return i.Target.Install(cmd.OutOrStdout(), files, "make tidy unit; README.md lists the other targets")
		},
	}
}

func (i *Init) arguments(cmd *cobra.Command, args []string) error {
	switch {
	case i.From != "" && len(args) > 0:
		return fmt.Errorf("%s --from takes no argument, but got %q: --from names the project", cmd.CommandPath(), args[0])
	case i.From == "" && len(args) != 1:
		return fmt.Errorf("%s takes the path of a Go module, for example github.com/me/bookstore, but got %d arguments; for a project that exists use --from", cmd.CommandPath(), len(args))
	}
	return nil
}

// definitions writes those of a project that exists, into it unless --dir says another folder.
func (i *Init) definitions(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(forMarkers, flag.Name) {
			errs = append(errs, fmt.Errorf("--%s is for a new project, not for --from", flag.Name))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	files, err := Definitions(i.From)
	if err != nil {
		return err
	}
	target := i.Target
	if !cmd.Flags().Changed("dir") {
		target.Folder = i.From
	}
	return target.Install(cmd.OutOrStdout(), files, "go get github.com/sallyport-io/sallyport, and give definitions.Webhooks your handlers")
}

// AddAPIFlags adds the flags that say what the API is.
func (i *Init) AddAPIFlags(cmd *cobra.Command) {
	flags, p := cmd.Flags(), &i.Project
	flags.StringVar(&p.Kind, "kind", "", "`kind` of the API, for example Book")
	flags.StringSliceVar(&p.Versions, "versions", nil, "`versions` of the kind, for example v1alpha1,v1; the one that Kubernetes prefers is stored, the others are converted")
	flags.StringVar(&p.Group, "group", "", "`group` of the API; empty for NAME.example.com")
	flags.StringVar(&p.Plural, "plural", "", "plural `name` of the kind, in lower case; empty for the one that is guessed")
	flags.StringVar(&p.Scope, "scope", ScopeNamespaced, "`scope` of the kind: "+strings.Join(Scopes, " or "))
	cli.CompleteChoices(cmd, "scope", Scopes)
}

// AddProjectFlags adds the flags that say what the program is called, and where it is.
func (i *Init) AddProjectFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&i.Project.Name, "name", "", "`name` of the program and of its objects in a cluster; empty for the last part of the module's path")
	flags.StringVar(&i.Project.Replace, "replace", "", "`folder` with a checkout of Sallyport to build against, absolute or as seen from the project; empty for the release that this command is of")
	cli.CompleteFolders(cmd, "replace")
	flags.StringVar(&i.From, "from", "", "`folder` of a project that exists, whose markers +kubebuilder:webhook become definitions")
	cli.CompleteFolders(cmd, "from")
	flags.StringVar(&i.Target.Folder, "dir", ".", "`folder` to write to, created if missing; with --from it is that project")
	cli.CompleteFolders(cmd, "dir")
	flags.BoolVar(&i.Target.DryRun, "dry-run", false, "change nothing: print which files would be written")
	flags.BoolVar(&i.Target.Force, "overwrite", false, "overwrite existing files")
}
