// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// validateServer checks the flags about a cluster.
func (o *reviewOptions) validateServer(flags *pflag.FlagSet) error {
	if !o.server {
		given := cli.Given(flags, func(f *pflag.Flag) bool { return f.Name == "kubeconfig" || f.Name == "context" })
		if len(given) > 0 {
			return fmt.Errorf("%s requires --server: without it, no cluster is asked", strings.Join(given, ", "))
		}
		return nil
	}
	if o.release.Known() {
		return errors.New("--" + ReleaseFlag + " cannot be used with --server: the API server decides as its own release does")
	}
	if o.operation != string(admissionv1.Create) {
		return errors.New("--server requires --operation CREATE: objects that exist in the cluster are updates then")
	}
	return nil
}

// openServer returns the API server that the flags choose, with the user's own rights or those of --as.
func (o *reviewOptions) openServer(impersonate bool) (*review.Server, error) {
	c, err := o.cluster.Open()
	if err != nil {
		return nil, err
	}
	var as *authenticationv1.UserInfo
	if impersonate {
		as = &o.user
	}
	server, err := dryrun.New(c.Config, as)
	if err != nil {
		return nil, err
	}
	known, err := resources.OfCluster(c.Client.Discovery())
	return &review.Server{Pods: &dryrun.Pods{Server: server}, Resources: known}, err
}
