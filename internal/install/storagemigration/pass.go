// SPDX-License-Identifier: Apache-2.0

package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	fieldManager = "sallyport-storage-migration"
	// callTimeout is longer than an API server takes to ask webhooks and to give up.
	callTimeout = 45 * time.Second
	// mostFailures end a pass: somebody has to look at them first.
	mostFailures = 1000
	// mostReasons are how many objects are named.
	mostReasons = 5
	// mostOutages are calls in a row that no API server has answered.
	mostOutages = 3
)

// noChange is a merge patch (RFC 7386) that changes nothing. The API server reads the object, for
// which it converts it to the version of the request, and writes it in the storage version; it
// writes nothing if the bytes are the same. In contrast to an update there is no
// resourceVersion that could be outdated, and nothing of the object is sent; in contrast to an apply
// an object without managed fields gets none. The status stays, as in any patch of the object
// itself.
var noChange = []byte("{}")

// pass is one time through all objects.
type pass struct {
	*Migrator
	crd     *apiextensionsv1.CustomResourceDefinition
	storage string
	began   time.Time

	rewritten, unchanged, gone, failed int
	reasons                            []string
	outages                            int
}

// run rewrites all objects that there were when it began. Those that are made meanwhile are stored
// in the storage version anyway. It returns an error if it could not see all of them; what
// failed is in the fields.
func (p *pass) run(ctx context.Context) error {
	versions := servedVersions(p.crd, p.storage)
	if len(versions) == 0 {
		return errors.New("the definition serves no version")
	}
	// One object that cannot be converted makes every list fail in which it would have to be. In
	// the version that it is stored in it need not be converted.
	var errs []error
	for _, version := range versions {
		err := p.list(ctx, version, versions[0])
		if err == nil || ctx.Err() != nil || errors.Is(err, errGivenUp) {
			return err
		}
		errs = append(errs, fmt.Errorf("listing them as %s: %w", version, err))
	}
	return fmt.Errorf("the objects cannot be listed in any version, which may be because of one that cannot be converted: %w", errors.Join(errs...))
}

// errGivenUp ends a pass that saw objects, and more failures than it is sensible to go on with.
var errGivenUp = errors.New("given up for now")

// list rewrites page after page of the objects, listed in one version and written in another one.
func (p *pass) list(ctx context.Context, version, through string) error {
	p.rewritten, p.unchanged, p.gone, p.failed, p.reasons, p.outages = 0, 0, 0, 0, nil, 0
	objects := p.metadata.Resource(p.resource(version))
	options := metav1.ListOptions{Limit: p.pace.Page}
	for {
		page, err := within(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
			return objects.List(ctx, options)
		})
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// etcd has forgotten the state that was listed. The answer may have a token that goes on
			// with the state of now; those who are new before it are stored as they should be.
			options.Continue = continueOf(err)
			p.log.Info("listing objects took too long for the API server, it goes on with the state of now", "fromTheStart", options.Continue == "")
			continue
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := p.rewrite(ctx, &page.Items[i], through); err != nil {
				return err
			}
		}
		p.progress(page)
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// continueOf is the token with which a list goes on after its state is gone, or empty.
func continueOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().ListMeta.Continue
	}
	return ""
}

func (p *pass) progress(page *metav1.PartialObjectMetadataList) {
	seen := p.rewritten + p.unchanged + p.gone + p.failed
	detail := fmt.Sprintf("%d objects seen, %d of them rewritten as %s, %d failed", seen, p.rewritten, p.storage, p.failed)
	attributes := []any{"seen", seen, "rewritten", p.rewritten, "failed", p.failed}
	if page.RemainingItemCount != nil {
		detail += fmt.Sprintf(", %d to go", *page.RemainingItemCount)
		attributes = append(attributes, "remaining", *page.RemainingItemCount)
	}
	p.say(detail)
	p.log.Info("rewriting stored objects", attributes...)
}

// rewrite has one object written in the storage version.
func (p *pass) rewrite(ctx context.Context, object *metav1.PartialObjectMetadata, version string) error {
	if err := p.limiter.Wait(ctx); err != nil {
		return err
	}
	objects := p.metadata.Resource(p.resource(version)).Namespace(object.Namespace)
	written, err := within(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		return objects.Patch(ctx, object.Name, types.MergePatchType, noChange, metav1.PatchOptions{FieldManager: fieldManager})
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case apierrors.IsNotFound(err): // deleted meanwhile
		p.gone++
		p.metrics.objects.WithLabelValues("gone").Inc()
	case err != nil:
		return p.fail(object, err)
	case written.ResourceVersion != object.ResourceVersion:
		p.rewritten++
		p.metrics.objects.WithLabelValues("rewritten").Inc()
	default:
		p.unchanged++
		p.metrics.objects.WithLabelValues("unchanged").Inc()
	}
	p.outages = 0
	return nil
}

// fail notes an object that could not be rewritten. It returns an error if it is no use to go on.
func (p *pass) fail(object *metav1.PartialObjectMetadata, err error) error {
	p.failed++
	p.metrics.objects.WithLabelValues("failed").Inc()
	reason := strings.TrimPrefix(object.Namespace+"/"+object.Name, "/") + ": " + reasonOf(err)
	if p.failed <= mostReasons {
		p.reasons = append(p.reasons, reason)
	}
	p.log.Debug("an object cannot be rewritten", slog.String("reason", reason))
	if p.outages++; !away(err) {
		p.outages = 0
	}
	if p.outages >= mostOutages {
		return fmt.Errorf("%w: the API server does not answer: %w", errGivenUp, err)
	}
	if p.failed >= mostFailures {
		p.metrics.blocked.Set(float64(p.failed))
		return fmt.Errorf("%w: %w", errGivenUp, &blockedError{p.failed, p.reasons})
	}
	return nil
}

// away tells whether an error says nothing of the object.
func away(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err)
}

// reasonOf says why an object could not be rewritten. What the API server says of invalid fields
// repeats their values, so these are named alone.
func reasonOf(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err.Error()
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}
	return "is invalid: " + strings.Join(fields, ", ")
}

func (p *pass) resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: p.crd.Spec.Group, Version: version, Resource: p.crd.Spec.Names.Plural}
}

// within calls with a deadline.
func within[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx)
}

// blockedError says which objects keep storedVersions from being pruned.
type blockedError struct {
	count   int
	reasons []string
}

func (e *blockedError) Error() string {
	text := strings.Join(e.reasons, "; ")
	if more := e.count - len(e.reasons); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	objects := "1 object"
	if e.count != 1 {
		objects = fmt.Sprintf("%d objects", e.count)
	}
	return objects + " cannot be rewritten, and status.storedVersions stays as it is until then: repair or delete them, or repair the converter or webhook that refuses them: " + text
}
