// SPDX-License-Identifier: Apache-2.0

package cli

import "fmt"

// Exit statuses besides 0 and 1.
const (
	ExitFound  ExitStatus = 2 // lint, doctor, missed, convert: there are findings
	ExitDenied ExitStatus = 3 // review, explain, diff, preview: an object was or would be denied
)

// ExitStatus is an error that has been reported already.
type ExitStatus int

// Error implements error.
func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
