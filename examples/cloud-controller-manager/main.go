// SPDX-License-Identifier: Apache-2.0

// Command cloud-controller-manager is the sample of package cloud: a cloud controller
// manager of a cloud that is in a file, with a webhook that labels persistent volumes.
// By its flags it is one process with controllers and webhooks, or a webhook manager.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/logs/json/register"          // for --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the client
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric of the version
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/cloud"
	"github.com/sallyport-io/sallyport/examples/cloud-controller-manager/samplecloud"
)

func main() {
	samplecloud.Register()
	command, err := newCommand(wait.NeverStop)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(cli.Run(command))
}

func newCommand(stop <-chan struct{}) (*cobra.Command, error) {
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	// The disks of the sample cloud are GCE's by the type of their volumes.
	webhooks, err := cloud.New(cloud.PersistentVolumeLabel("gce"))
	if err != nil {
		return nil, err
	}
	return webhooks.Command(opts, initializeCloud, app.DefaultInitFuncConstructors, names.CCMControllerAliases(), cliflag.NamedFlagSets{}, stop)
}

// initializeCloud ends the process if there is no cloud: it has no other way.
func initializeCloud(c *config.CompletedConfig) cloudprovider.Interface {
	provider := c.ComponentConfig.KubeCloudShared.CloudProvider
	made, err := cloudprovider.InitCloudProvider(provider.Name, provider.CloudConfigFile)
	if err != nil {
		klog.ErrorS(err, "There is no cloud", "provider", provider.Name, "file", provider.CloudConfigFile)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	return made
}
