// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/cmd/internal/install/scaffold"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// initOptions are the options of the command init.
type initOptions struct {
	project scaffold.Project
	target  scaffold.Target
	from    string // a project, or manifests of one, that become definitions; empty to write a new project
}

// forMarkers are the flags that --from looks at. Others are about a new project.
var forMarkers = []string{"from", "dir", "dry-run", "overwrite"}

// Init returns the command init. Version is that of Sallyport that the project asks for.
func Init(version string) *cobra.Command {
	i := initOptions{project: scaffold.Project{Sallyport: version}}
	cmd := &cobra.Command{
		Use:   "init MODULE --kind KIND --versions VERSIONS | --from FOLDER | --from FILE",
		Short: "Write a project with webhooks of your own, or definitions from one that exists",
		Long: "Init writes a Go project around one kind: its types with deep copies and the CustomResourceDefinition,\n" +
			"webhooks that set defaults and validate, conversion between the versions, tests of all of it by themselves\n" +
			"and on a real API server, a Makefile, a Dockerfile and a kustomization. It builds and its tests pass; what the\n" +
			"API is about is yours to fill in.\n\n" +
			"With --from it writes the webhooks of a project that exists as Go definitions into its internal/definitions.\n" +
			"From a folder it reads the markers +kubebuilder:webhook, with all arguments of controller-gen. Patches of\n" +
			"kustomize are not in markers: give it the manifests that are applied as a file, or - for stdin. They then decide,\n" +
			"and the markers of --dir say where the handlers are. What has no place in a definition is a note on stderr.\n\n" +
			"Nothing is reached over the network. No file that exists is replaced, unless --overwrite is given.",
		Example: "  sallyport init github.com/me/bookstore --kind Book --versions v1alpha1,v1 --dir bookstore\n" +
			"  sallyport init github.com/me/fleet --kind Ship --versions v1 --group fleet.example.org --scope Cluster --dry-run\n" +
			"  sallyport init --from .\n" +
			"  kustomize build config/default | sallyport init --from -",
		Args: i.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if i.from != "" {
				return i.definitions(cmd)
			}
			i.project.Module = args[0]
			files, err := i.project.Files()
			if err != nil {
				return err
			}
			return i.target.Install(cmd.OutOrStdout(), files, "make tidy unit; README.md lists the other targets")
		},
	}
	cli.AddFlagGroup(cmd, "API", func() { i.addAPIFlags(cmd) })
	cli.AddFlagGroup(cmd, "Project", func() { i.addProjectFlags(cmd) })
	return cmd
}

func (i *initOptions) arguments(cmd *cobra.Command, args []string) error {
	switch {
	case i.from != "" && len(args) > 0:
		return fmt.Errorf("%s --from takes no argument, but got %q: --from names the project", cmd.CommandPath(), args[0])
	case i.from == "" && len(args) != 1:
		return fmt.Errorf("%s takes the path of a Go module, for example github.com/me/bookstore, but got %d arguments; for a project that exists use --from", cmd.CommandPath(), len(args))
	}
	return nil
}

// definitions writes those of a project that exists, into it unless --dir says another folder.
func (i *initOptions) definitions(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(forMarkers, flag.Name) {
			errs = append(errs, fmt.Errorf("--%s is for a new project, not for --from", flag.Name))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	target, read := i.target, func() ([]scaffold.File, []string, error) { return scaffold.Definitions(i.from) }
	switch info, err := os.Stat(i.from); {
	case i.from != manifest.Stdin && err != nil:
		return err
	case i.from == manifest.Stdin || !info.IsDir():
		read = func() ([]scaffold.File, []string, error) {
			objects, err := manifest.ReadPath(i.from, cmd.InOrStdin())
			if err != nil {
				return nil, nil, err
			}
			return scaffold.Rendered(target.Folder, objects)
		}
	case !cmd.Flags().Changed("dir"):
		target.Folder = i.from
	}
	files, notes, err := read()
	if err != nil {
		return err
	}
	for _, note := range notes {
		manifest.Note(cmd.ErrOrStderr(), "note: %s", note)
	}
	return target.Install(cmd.OutOrStdout(), files, "go get github.com/sallyport-io/sallyport, and give definitions.Webhooks your handlers")
}

// addAPIFlags adds the flags that say what the API is.
func (i *initOptions) addAPIFlags(cmd *cobra.Command) {
	flags, p := cmd.Flags(), &i.project
	flags.StringVar(&p.Kind, "kind", "", "`kind` of the API, for example Book")
	flags.StringSliceVar(&p.Versions, "versions", nil, "`versions` of the kind, for example v1alpha1,v1; the one that Kubernetes prefers is stored, the others are converted")
	flags.StringVar(&p.Group, "group", "", "`group` of the API; empty for NAME.example.com")
	flags.StringVar(&p.Plural, "plural", "", "plural `name` of the kind, in lower case; empty for the one that is guessed")
	flags.StringVar(&p.Scope, "scope", scaffold.ScopeNamespaced, "`scope` of the kind: "+strings.Join(scaffold.Scopes, " or "))
	cli.CompleteChoices(cmd, "scope", scaffold.Scopes)
}

// addProjectFlags adds the flags that say what the program is called, and where it is.
func (i *initOptions) addProjectFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&i.project.Name, "name", "", "`name` of the program and of its objects in a cluster; empty for the last part of the module's path")
	flags.StringVar(&i.project.Replace, "replace", "", "`folder` with a checkout of Sallyport to build against, absolute or as seen from the project; empty for the release that this command is of")
	cli.CompleteFolders(cmd, "replace")
	flags.StringVar(&i.from, "from", "", "`source` of definitions: the folder of a project with markers +kubebuilder:webhook, a file of its rendered manifests, or - for stdin")
	cli.CompleteFiles(cmd, "from", manifest.Extensions...)
	flags.StringVar(&i.target.Folder, "dir", ".", "`folder` to write to, created if missing; with --from it is the project")
	cli.CompleteFolders(cmd, "dir")
	flags.BoolVar(&i.target.DryRun, "dry-run", false, "change nothing: print which files would be written")
	flags.BoolVar(&i.target.Force, "overwrite", false, "overwrite existing files")
}
