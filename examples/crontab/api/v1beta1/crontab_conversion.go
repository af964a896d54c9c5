// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/conversion"
)

// Hub makes this version the one that the others convert to and from.
func (*CronTab) Hub() {}

// Where is kept what the other side has no words for. Conversion must not fail, whatever
// the author wrote: it is the validating webhook that says what is wrong.
const (
	cronSpecAnnotation = "stable.example.com/cron-spec" // a line that is no five fields
	scheduleAnnotation = "stable.example.com/schedule"  // fields that make no line
)

// SetCronSpec takes the schedule from one line, as the spokes have it.
func (c *CronTab) SetCronSpec(line string) error {
	var kept Schedule
	if conversion.Restore(c, scheduleAnnotation, &kept) && kept.line() == line {
		c.Spec.Schedule = kept
		return nil
	}
	c.Spec.Schedule = parse(line)
	if c.Spec.Schedule.line() == line {
		return nil
	}
	return conversion.Stash(c, cronSpecAnnotation, line)
}

// CronSpec is the schedule in one line, for a spoke that has the hub's metadata.
func (c *CronTab) CronSpec(spoke metav1.Object) (string, error) {
	var kept string
	if conversion.Restore(spoke, cronSpecAnnotation, &kept) && parse(kept) == c.Spec.Schedule {
		return kept, nil
	}
	line := c.Spec.Schedule.line()
	if parse(line) == c.Spec.Schedule {
		return line, nil
	}
	return line, conversion.Stash(spoke, scheduleAnnotation, c.Spec.Schedule)
}

func (s Schedule) line() string {
	if s == (Schedule{}) {
		return ""
	}
	return strings.Join([]string{s.Minute, s.Hour, s.DayOfMonth, s.Month, s.DayOfWeek}, " ")
}

// parse returns an empty schedule if the line has not five fields.
func parse(line string) Schedule {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return Schedule{}
	}
	return Schedule{Minute: fields[0], Hour: fields[1], DayOfMonth: fields[2], Month: fields[3], DayOfWeek: fields[4]}
}
