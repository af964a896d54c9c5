// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// An Exit is an exit status and what it means.
type Exit struct {
	Status  int
	Meaning string
}

// ExitStatuses are what the statuses mean in all commands.
var ExitStatuses = []Exit{
	{0, "success"},
	{1, "error: something could not be done or read, the command line is invalid, or the result is unknown"},
	{int(ExitFound), "found: problems, differences or failed cases"},
	{int(ExitDenied), "denied: an object is or would be denied"},
	{int(ExitPartly), "partly: nothing that was found is wrong, and not everything could be looked at"},
}

// exits are the commands that say more about their statuses than success and error, by their words.
var exits = map[string][]Exit{
	"chain": {
		{0, "the request is allowed, or was only listed"},
		{1, "the result depends on something unknown, without --allow-unknown; or an error"},
		{int(ExitDenied), "the request is refused"},
	},
	"config check": {{0, "the file has no problems"}, {1, "it has, or it could not be read"}},
	"convert": {
		{0, "nothing is lost"},
		{1, "something could not be read"},
		{int(ExitFound), "a conversion loses something"},
	},
	"diff": {
		{0, "the pods are allowed"},
		{1, "it is unknown whether the API server accepts a pod; or an error"},
		{int(ExitDenied), "a pod is denied; stderr has the message"},
	},
	"doctor": {
		{0, "there is nothing to fix"},
		{1, "the API server does not answer, or it is unknown whether the webhooks work"},
		{int(ExitFound), "there is something to fix"},
	},
	"drift": {{0, "no pod differs"}, {1, "error"}, {int(ExitFound), "a pod differs"}},
	"explain": {
		{0, "the pod would be admitted"},
		{1, "it is unknown whether the API server accepts the pod; or an error"},
		{int(ExitDenied), "the pod would be denied"},
	},
	"lint": {
		{0, "there is no finding of --severity or worse"},
		{1, "an input could not be read; everything else was checked"},
		{int(ExitFound), "there are findings"},
	},
	"preview": {
		{0, "all pods would be admitted"},
		{1, "it is unknown whether the API server accepts a pod; or an error"},
		{int(ExitDenied), "the object itself would be denied, or pods that are admitted now"},
	},
	"record": {{0, "all replicas answered"}, {1, "one did not; the reviews of the others are written"}},
	"replay": {
		{0, "all decisions are the same"},
		{1, "an input could not be read; everything else is replayed"},
		{int(ExitFound), "a decision differs"},
		{int(ExitPartly), "no decision differs, but some requests could not be compared, without --allow-unknown"},
	},
	"review": {
		{0, "all objects, and all pods that they would create, are allowed"},
		{1, "an object could not be reviewed, or its result is unknown, without --allow-unknown; all others are reviewed"},
		{int(ExitDenied), "an object is denied; stderr names it, the webhook and the reason"},
	},
	"rollout restart": {
		{0, "all such workloads were restarted, or there is none"},
		{1, "error"},
		{int(ExitFound), "some were not restarted, as with --dry-run"},
	},
	"rollout status": {
		{0, "the rollout is complete or in progress"},
		{1, "the time of --timeout is over; or an error"},
		{int(ExitFound), "the rollout is aborted or unhealthy"},
	},
	"test": {
		{0, "all cases passed"},
		{1, "a case could not run, its result is unknown, without --allow-unknown, or --run selects none; all others run"},
		{int(ExitFound), "a case failed: the result is not the expected one, or the case tests nothing"},
	},
}

// ExitsOf returns the exit statuses of a command by its words, without the name of the program.
func ExitsOf(command string) []Exit {
	if own, listed := exits[command]; listed {
		return own
	}
	return []Exit{{0, "success"}, {1, "error"}}
}

// ExitCommands returns the commands that say more about their statuses than success and error.
func ExitCommands() []string {
	var out []string
	for command := range exits {
		out = append(out, command)
	}
	return out
}

// words are the names of a command and those above it, without the program.
func words(cmd *cobra.Command) string {
	var out []string
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		out = append([]string{cmd.Name()}, out...)
	}
	return strings.Join(out, " ")
}

// printExits prints the exit statuses of a command, in lines of at most width characters.
func printExits(out *strings.Builder, cmd *cobra.Command, width int) {
	out.WriteString("\nExit status:\n")
	for _, e := range ExitsOf(words(cmd)) {
		line := fmt.Sprintf("  %d ", e.Status)
		for _, word := range strings.Fields(e.Meaning) {
			if len(line)+1+len(word) > width {
				out.WriteString(line + "\n")
				line = "    "
			}
			line += " " + word
		}
		out.WriteString(line + "\n")
	}
}
