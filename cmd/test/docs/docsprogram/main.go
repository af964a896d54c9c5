// SPDX-License-Identifier: Apache-2.0

// Command docsprogram is each program that the commands of documents name: see package programs.
package main

import (
	"os"

	"github.com/sallyport-io/sallyport/cmd/test/docs/programs"
)

func main() { os.Exit(programs.Run(os.Args)) }
