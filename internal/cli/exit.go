// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit statuses besides 0 and 1: see [ExitStatuses].
const (
	ExitFound  ExitStatus = 2
	ExitDenied ExitStatus = 3
	ExitPartly ExitStatus = 4
)

// ExitStatus is an error that has been reported already.
type ExitStatus int

// Error implements error.
func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Execute runs a command and returns its exit status. Report prints an error that has not been
// reported.
func Execute(ctx context.Context, cmd *cobra.Command, report func(error)) int {
	cmd.SilenceErrors = true
	err := cmd.ExecuteContext(ctx)
	var status ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	default:
		report(err)
		return 1
	}
}

// ErrUnknown returns an error that says that a result depends on what is not known; nil if all is. The flag
// --allow-unknown of the command accepts that.
func ErrUnknown(what []string) error {
	if len(what) == 0 {
		return nil
	}
	more := ""
	if n := len(what) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Errorf("the result depends on unknown inputs: %s%s; --allow-unknown accepts that", what[0], more)
}
