// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
)

const defaultImage = "my-awesome-cron-image"

// setDefaults sets fields that the author left empty.
func setDefaults(_ context.Context, cronTab *v1.CronTab) error {
	if cronTab.Spec.Image == "" {
		cronTab.Spec.Image = defaultImage
	}
	if cronTab.Spec.Replicas == nil {
		cronTab.Spec.Replicas = new(int32(1))
	}
	return nil
}

// cronSpec is the pattern of the Kubernetes documentation.
var cronSpec = regexp.MustCompile(`^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$`)

// validate reports all problems, each with its field.
func validate(ctx context.Context, cronTab *v1.CronTab) error {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	switch {
	case cronTab.Spec.CronSpec == "":
		errs = append(errs, field.Required(spec.Child("cronSpec"), `say when to run, for example "0 3 * * *"`))
	case !cronSpec.MatchString(cronTab.Spec.CronSpec):
		errs = append(errs, field.Invalid(spec.Child("cronSpec"), cronTab.Spec.CronSpec, `must be five fields, for example "*/5 * * * *"`))
	case strings.HasPrefix(cronTab.Spec.CronSpec, "* "):
		admission.Warn(ctx, "spec.cronSpec: it will run every minute")
	}
	if replicas := cronTab.Spec.Replicas; replicas != nil && (*replicas < 1 || *replicas > 10) {
		errs = append(errs, field.Invalid(spec.Child("replicas"), *replicas, "must be from 1 to 10"))
	}
	return errs.ToAggregate()
}

// validateUpdate also looks at what there was: an image may be updated, and not
// replaced by another one.
func validateUpdate(ctx context.Context, old, cronTab *v1.CronTab) error {
	if was, is := repository(old.Spec.Image), repository(cronTab.Spec.Image); was != "" && was != is {
		return field.ErrorList{
			field.Forbidden(field.NewPath("spec", "image"), "the repository must stay "+was+"; create another CronTab"),
		}.ToAggregate()
	}
	return validate(ctx, cronTab)
}

// repository is an image without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if tag := strings.LastIndex(image, ":"); tag > strings.LastIndex(image, "/") {
		image = image[:tag]
	}
	return image
}
