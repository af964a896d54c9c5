// SPDX-License-Identifier: Apache-2.0

package main

// A limit is what the project promises of a figure. Limits on time are ratios
// within a run, or so wide that the machine does not decide.
type limit struct {
	Part   string // of the run that measures it; see plan.Only
	Name   string
	Unit   string
	AtMost float64
	Aim    float64 // what to strive for; 0 where AtMost is all
	value  func(*results) (value float64, measured bool)
}

// A verdict is a limit and what was measured. What was not measured does not
// hold.
type verdict struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Measured bool    `json:"measured"`
	Value    float64 `json:"value"`
	AtMost   float64 `json:"atMost"`
	Aim      float64 `json:"aim,omitempty"`
	Holds    bool    `json:"holds"`
}

var limits = []limit{
	{Part: partPodDefaults, Name: "notebook pod, 11 PodDefaults, 1 matches", Unit: "× floor", AtMost: 2.5, Aim: 1.8, value: ratio(notebookOneMatch, sallyportName)},
	{Part: partPodDefaults, Name: "notebook pod, 11 PodDefaults, none matches", Unit: "× floor", AtMost: 2.0, Aim: 1.4, value: ratio(notebookNoMatch, sallyportName)},
	{Part: partPodDefaults, Name: "10,000 PodDefaults, 1 matches", Unit: "× the first row", AtMost: 1.2, value: quotient(ratio(notebookManyMatch, sallyportName), ratio(notebookOneMatch, sallyportName))},
	{Part: partPodDefaults, Name: "peak RSS with 10,000 PodDefaults", Unit: "MiB", AtMost: 128, value: func(r *results) (float64, bool) {
		m, ok := r.find(notebookManyMatch, sallyportName)
		return m.PeakRSSMiB, ok
	}},
	{Part: partPodDefaults, Name: "notebook pod, 1 matches, usage Check", Unit: "× without", AtMost: 1.15, value: quotient(cost(usageOneMatch, usageName), cost(usageOneMatch, sallyportName))},
	{Part: partPodDefaults, Name: "rollout in progress", Unit: "× without", AtMost: 1.05, value: quotient(cost(rolloutInProgress, sallyportName), cost(rolloutNone, sallyportName))},
	{Part: partSizes, Name: "pod of 128 KB, 1 matches", Unit: "× floor", AtMost: 7.5, Aim: 4, value: ratio(pod128KB, sallyportName)},
	{Part: partSizes, Name: "1,000 more variables, 2 match", Unit: "× floor", AtMost: 9, Aim: 5, value: ratio(variables1000, sallyportName)},
	{Part: partSizes, Name: "notebook pod, 20 match", Unit: "× floor", AtMost: 7.5, Aim: 4.5, value: ratio(notebook20Match, sallyportName)},
	{Part: partStart, Name: "RSS at rest, without files", Unit: "MiB", AtMost: 24, Aim: 12, value: func(r *results) (float64, bool) {
		return r.IdleAnonymousMiB, r.IdleAnonymousMiB > 0
	}},
	{Part: partStart, Name: "start to ready with 10,000 PodDefaults", Unit: "s", AtMost: 2, Aim: 0.7, value: func(r *results) (float64, bool) {
		return r.StartSeconds, r.StartSeconds > 0
	}},
	{Part: partLibrary, Name: "Mutate[*corev1.Pod] adds to each container", Unit: "× floor", AtMost: 4.0, Aim: 3.0, value: ratio(libraryAdd, libraryName)},
	{Part: partLibrary, Name: "Mutate[*corev1.Pod] changes nothing", Unit: "× floor", AtMost: 3.5, Aim: 2, value: ratio(libraryNothing, libraryName)},
	{Part: partLibrary, Name: "Validate[*corev1.Pod]", Unit: "× floor", AtMost: 3.0, Aim: 1.9, value: ratio(libraryValidate, libraryName)},
	{Part: partConversion, Name: "CronTab v1beta1 to v1, typed", Unit: "× floor", AtMost: 2.0, value: ratio(conversionTyped, libraryName)},
	{Part: partConversion, Name: "what that adds to the floor", Unit: "× controller-runtime", AtMost: 0.25, value: quotient(added(conversionTyped, libraryName), added(conversionTyped, neighbourName))},
	{Part: partConversion, Name: "CronTab, apiVersion alone", Unit: "× floor", AtMost: 1.4, value: ratio(conversionBytes, libraryName)},
	{Part: partConversion, Name: "LIST of 5,000, CPU added to the floor", Unit: "× controller-runtime", AtMost: 0.4, value: listed(func(l listing) float64 { return l.RatioToFloor - 1 })},
	{Part: partConversion, Name: "LIST of 5,000, time", Unit: "× controller-runtime", AtMost: 0.9, value: listed(func(l listing) float64 { return l.Seconds })},
	{Part: partBackstop, Name: "no policy / policy with 1,000 PodDefaults", Unit: "× creates/s", AtMost: 1 / 0.65, value: backstopCost(0, 1000)},
	{Part: partBackstop, Name: "policy with 10 / with 1,000 PodDefaults", Unit: "× creates/s", AtMost: 1.15, value: backstopCost(10, 1000)},
	{Part: partExport, Name: "webhook / policies, 11 PodDefaults", Unit: "× creates/s", AtMost: 2, value: exportCost},
	{Part: partFreshness, Name: "freshness Cached / Consistent, 128 clients", Unit: "× creates/s", AtMost: 1 / 0.6, value: freshnessCost},
	{Part: partPolicies, Name: "imagepull, nothing to set", Unit: "× floor", AtMost: 2.2, value: ratio(imagePullNothing, policiesName)},
	{Part: partPolicies, Name: "imagepull, sets the policy of each container", Unit: "× floor", AtMost: 2.5, value: ratio(imagePullChange, policiesName)},
	{Part: partPolicies, Name: "imagepull, validates", Unit: "× floor", AtMost: 2.2, value: ratio(imagePullValidate, policiesName)},
	{Part: partPolicies, Name: "servicetype", Unit: "× floor", AtMost: 1.9, value: ratio(serviceTypeAllowed, policiesName)},
	{Part: partPolicies, Name: "projectlimit, stamps a namespace", Unit: "× floor", AtMost: 1.9, value: ratio(projectLimitStamp, policiesName)},
	{Part: partDatasets, Name: "dataset, pod with two datasets", Unit: "× floor", AtMost: 3.5, value: ratio(datasetTwo, datasetsName)},
	{Part: partDatasets, Name: "dataset, pod that does not ask", Unit: "× floor", AtMost: 2.0, value: ratio(datasetNone, datasetsName)},
	{Part: partDatasets, Name: "peak RSS, 5,000 datasets, 20,000 claims", Unit: "MiB", AtMost: 256, value: func(r *results) (float64, bool) {
		m, ok := r.find(datasetTwo, datasetsName)
		return m.PeakRSSMiB, ok
	}},
	{Part: partDatasets, Name: "start to ready with them", Unit: "s", AtMost: 5, value: func(r *results) (float64, bool) {
		return r.DatasetStartSeconds, r.DatasetStartSeconds > 0
	}},
	{Part: partPolicies, Name: "projectlimit, counts", Unit: "× floor", AtMost: 1.9, value: ratio(projectLimitCount, policiesName)},
	{Part: partPolicies, Name: "podtemplate, Deployment of the notebook pod", Unit: "× floor", AtMost: 11, value: ratio(podTemplateCreated, policiesName)},
	{Part: partPolicies, Name: "podtemplate, the same, scaled", Unit: "× floor", AtMost: 3.5, value: ratio(podTemplateScaled, policiesName)},
	{Part: partVolumes, Name: "labels of a volume", Unit: "× floor", AtMost: 2.5, value: ratio(volumeLabelled, cloudName)},
	{Part: partVolumes, Name: "time of a volume's creation, 1/0.9 the rate", Unit: "× canned patch", AtMost: 1.11, value: volumeRate},
	{Part: partCommand, Name: "sallyport version, from its start to its end", Unit: "ms", AtMost: 100, value: func(r *results) (float64, bool) {
		return r.ColdStartMillis, r.ColdStartMillis > 0
	}},
	{Part: partScale, Name: "100,000 PodDefaults, start to ready", Unit: "s", AtMost: 15, Aim: 6, value: scaledBy(func(s *scaled) float64 { return s.StartSeconds })},
	{Part: partScale, Name: "100,000 PodDefaults, RSS some seconds later", Unit: "MiB", AtMost: 300, Aim: 250, value: scaledBy(func(s *scaled) float64 { return s.IdleRSSMiB })},
	{Part: partScale, Name: "100,000 PodDefaults, peak RSS of a leader", Unit: "MiB", AtMost: 700, Aim: 400, value: scaledBy(func(s *scaled) float64 { return s.LeaderPeakRSSMiB })},
	{Part: partScale, Name: "100,000 PodDefaults, minimal pod, 1 matches", Unit: "× floor", AtMost: 2.8, Aim: 2.2, value: ratio(scaleOneMatch, sallyportName)},
	{Part: partScale, Name: "the same, while a leader catches up", Unit: "× floor", AtMost: 4.2, Aim: 2.6, value: ratio(scaleOneMatch, leaderName)},
	{Part: partScale, Name: "a change in all replicas, 99 %", Unit: "ms", AtMost: 2000, Aim: 1000, value: scaledBy(func(s *scaled) float64 { return s.Changes.Percentile99Ms })},
	{Part: partScale, Name: "all conflicts known after a leader's start", Unit: "s", AtMost: 300, Aim: 120, value: scaledBy(func(s *scaled) float64 { return s.Conflicts.Seconds })},
	{Part: partScale, Name: "drift of 150,000 pods", Unit: "s", AtMost: 60, Aim: 25, value: scaledBy(func(s *scaled) float64 { return s.Drift.Seconds })},
	{Part: partScale, Name: "memory of drift", Unit: "MiB", AtMost: 600, Aim: 300, value: scaledBy(func(s *scaled) float64 { return s.Drift.PeakRSSMiB })},
	{Part: partScale, Name: "peak RSS of a leader beside them", Unit: "MiB", AtMost: 1000, Aim: 300, value: scaledBy(func(s *scaled) float64 { return s.LeaderWithPodsRSSMiB })},
	{Part: partScale, Name: "the console's first page", Unit: "s", AtMost: 10, Aim: 1, value: scaledBy(func(s *scaled) float64 { return s.Console.FirstSeconds })},
	{Part: partScale, Name: "its page of a namespace", Unit: "s", AtMost: 10, Aim: 1, value: scaledBy(func(s *scaled) float64 { return s.Console.NamespaceSeconds })},
	{Part: partScale, Name: "reads of others after a restart, 99 %, × without sallyport", Unit: "×", AtMost: 4, Aim: 2, value: scaledBy(func(s *scaled) float64 { return s.Storm.ratio() })},
}

// scaledBy is a figure of a large cluster.
func scaledBy(figure func(*scaled) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		if r.Scale == nil {
			return 0, false
		}
		value := figure(r.Scale)
		return value, value > 0
	}
}

// limitsOf are the limits of what a plan measures.
func limitsOf(p schedule) []limit {
	var of []limit
	for _, l := range limits {
		if p.measures(l.Part) {
			of = append(of, l)
		}
	}
	return of
}

// ratio is the CPU time of a server for a review against the floor's.
func ratio(caseID, server string) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		m, ok := r.find(caseID, server)
		return m.RatioToFloor, ok
	}
}

// cost is the CPU time of a server for a review. Those of one stage are measured in turns: a floor for each would only
// add its own noise.
func cost(caseID, server string) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		m, ok := r.find(caseID, server)
		return m.CPUMicros, ok
	}
}

// added is what a server adds to the floor: TLS, HTTP and the kernel, which are the same for all, take another share
// of a call on each machine.
func added(caseID, server string) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		of, ok := ratio(caseID, server)(r)
		return of - 1, ok
	}
}

// listed is a figure of the library's LIST against controller-runtime's.
func listed(figure func(listing) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		ours, ok := r.listing(libraryName)
		theirs, okTheirs := r.listing(neighbourName)
		if !ok || !okTheirs || figure(theirs) == 0 {
			return 0, false
		}
		return figure(ours) / figure(theirs), true
	}
}

func quotient(a, b func(*results) (float64, bool)) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		x, okX := a(r)
		y, okY := b(r)
		if !okX || !okY || y == 0 {
			return 0, false
		}
		return x / y, true
	}
}

func judge(limits []limit, r *results) []verdict {
	verdicts := make([]verdict, 0, len(limits))
	for _, l := range limits {
		v := verdict{Name: l.Name, Unit: l.Unit, AtMost: l.AtMost, Aim: l.Aim}
		v.Value, v.Measured = l.value(r)
		v.Holds = v.Measured && v.Value <= l.AtMost
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func allHold(verdicts []verdict) bool {
	for _, v := range verdicts {
		if !v.Holds {
			return false
		}
	}
	return true
}
