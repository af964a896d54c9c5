// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
)

// ask lets the API server decide on a request whose result is not known, or is that it is allowed: its other plugins
// and its validation may refuse it. What it says is true of a request that is not a dry run only if no policy reads whether
// it is one, nor a field manager that is not known.
func (r *Run) ask(ctx context.Context, result *Result) error {
	reason := r.inDryRun(result)
	reads := reason != ""
	if reads && len(result.Unknown) > 0 {
		result.Notes = append(result.Notes, "the API server is not asked: "+reason)
		return nil
	}
	answer, err := r.DryRun(ctx, r.Request)
	if err != nil {
		return err
	}
	if answer.Verdict == dryrun.Unknown {
		result.Unknown = append(result.Unknown, "the API server's own answer to a dry run: "+answer.Reason)
		return nil
	}
	if reads && answer.Verdict == dryrun.Refused {
		if strings.Contains(answer.Status.Message, "ValidatingAdmissionPolicy '") { // which is evaluated here
			result.Notes = append(result.Notes, "the API server's dry run is refused, by a policy that may read whether it is one: "+answer.Status.Message)
			return nil
		}
		result.Unknown = append(result.Unknown, "whether the API server refuses it only as a dry run, which a policy reads: "+answer.Status.Message)
		return nil
	}
	result.Asked = true
	if len(result.Unknown) == 0 {
		if result.Denied = answer.Status; result.Denied != nil {
			result.Notes = append(result.Notes, "refused by the API server's own dry run; the steps evaluated here allow it")
		}
		return nil
	}
	result.Notes = append(result.Notes, "decided by the API server's own dry run, because here is not known: "+strings.Join(result.Unknown, "; "))
	result.Unknown = nil
	if result.Denied = answer.Status; answer.Object == nil {
		return nil
	}
	before := map[string]any{}
	if err := utiljson.Unmarshal(r.Request.Object.Raw, &before); err != nil {
		return err
	}
	result.Object = answer.Object
	result.Changes, err = changes(before, answer.Object, nil)
	return err
}
