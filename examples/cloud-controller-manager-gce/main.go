// SPDX-License-Identifier: Apache-2.0

// Command cloud-controller-manager-gce is a cloud controller manager with Google's own
// provider, k8s.io/cloud-provider-gcp/providers, and the webhook that labels its volumes.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	_ "k8s.io/cloud-provider-gcp/providers/gce" // the provider gce
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/cloud"
)

func main() {
	command, err := newCommand(initializeCloud, wait.NeverStop)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(cli.Run(command))
}

func newCommand(initialize app.InitCloudFunc, stop <-chan struct{}) (*cobra.Command, error) {
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	webhooks, err := cloud.New(cloud.PersistentVolumeLabel("gce"))
	if err != nil {
		return nil, err
	}
	return webhooks.Command(opts, initialize, app.DefaultInitFuncConstructors, names.CCMControllerAliases(), cliflag.NamedFlagSets{}, stop)
}

func initializeCloud(c *config.CompletedConfig) cloudprovider.Interface {
	provider := c.ComponentConfig.KubeCloudShared.CloudProvider
	made, err := cloudprovider.InitCloudProvider(provider.Name, provider.CloudConfigFile)
	if err != nil {
		klog.ErrorS(err, "There is no cloud", "provider", provider.Name, "file", provider.CloudConfigFile)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	return made
}
