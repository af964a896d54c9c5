// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Recording records a sample of admission reviews and their decisions in files or in memory,
// for `sallyport replay`. Values of environment variables and annotations, and the data of
// Secrets, are not recorded.
type Recording struct {
	// directory is an absolute path of files; empty to write none.
	Directory string `json:"directory,omitempty"`
	// samplingRatePerMillion is how many of a million reviews are recorded. Default 0.
	SamplingRatePerMillion int32 `json:"samplingRatePerMillion" min:"0" max:"1000000"`
	// webhooks are the names of those whose reviews are recorded; empty for all.
	Webhooks []string `json:"webhooks,omitempty"`
	// annotations are the names of annotations whose values are recorded; a final * makes a
	// prefix of a name.
	Annotations []string `json:"annotations,omitempty"`
	// variables are the names of environment variables whose values are recorded; a final *
	// makes a prefix of a name.
	Variables []string `json:"variables,omitempty"`
	// maxSizeMegabytes is the size at which a new file begins. Default 10.
	MaxSizeMegabytes int32 `json:"maxSizeMegabytes" min:"1"`
	// maxFiles is how many files are kept. Default 5.
	MaxFiles int32 `json:"maxFiles" min:"1"`
	// maxAgeDays is for how long a file is kept. Default 7.
	MaxAgeDays int32 `json:"maxAgeDays" min:"1"`
	// recentReviews is how many of the latest recorded reviews the server keeps in memory and
	// serves to `sallyport record`, on the port for metrics. Requires authentication.metrics
	// Delegated. At most 100000. Default 0.
	RecentReviews int32 `json:"recentReviews" min:"0" max:"100000"`
	// recentMegabytes limits the memory of the recent reviews; the oldest leave first. At most
	// 64. Default 8.
	RecentMegabytes int32 `json:"recentMegabytes" min:"1" max:"64"`
}
