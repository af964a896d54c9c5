// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Recording records a sample of admission reviews and their decisions in files or in memory,
// for `sallyport replay`. Values of environment variables and annotations, and the data of
// Secrets, are not recorded.
type Recording struct {
	// Directory is an absolute path of files; empty to write none.
	Directory string `json:"directory,omitempty"`
	// SamplingRatePerMillion is how many of a million reviews are recorded. Default 0.
	SamplingRatePerMillion int32 `json:"samplingRatePerMillion"`
	// Webhooks are the names of those whose reviews are recorded; empty for all.
	Webhooks []string `json:"webhooks,omitempty"`
	// Annotations and Variables are the names of annotations and environment variables whose
	// values are recorded; a final * makes a prefix of a name.
	Annotations []string `json:"annotations,omitempty"`
	Variables   []string `json:"variables,omitempty"`
	// MaxSizeMegabytes is the size at which a new file begins. Default 10.
	MaxSizeMegabytes int `json:"maxSizeMegabytes"`
	// MaxFiles is how many files are kept. Default 5.
	MaxFiles int `json:"maxFiles"`
	// MaxAgeDays is for how long a file is kept. Default 7.
	MaxAgeDays int `json:"maxAgeDays"`
	// RecentReviews is how many of the latest recorded reviews the server keeps in memory and
	// serves to `sallyport record`, on the port for metrics. Requires authentication.metrics
	// Delegated. At most 100000. Default 0.
	RecentReviews int `json:"recentReviews"`
	// RecentMegabytes limits the memory of the recent reviews; the oldest leave first. At most
	// 64. Default 8.
	RecentMegabytes int `json:"recentMegabytes"`
}
