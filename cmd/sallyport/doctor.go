// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/commands"
	"github.com/sallyport-io/sallyport/cmd/internal/install/deployment"
)

func newDoctorCommand() *cobra.Command {
	return commands.Doctor(authorityFlags(), deployment.Doctor())
}
