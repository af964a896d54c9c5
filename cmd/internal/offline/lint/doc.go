// SPDX-License-Identifier: Apache-2.0

// Package lint finds problems of webhook configurations and what they depend on:
// conversion stanzas of CustomResourceDefinitions, Services, workloads, certificates
// and rights.
//
// It reads objects from files or a cluster and makes no calls itself. Each rule is in
// its own file; [Rules] lists them in catalogue order. A rule that lacks data reports
// that in [Report.Skipped]. No rule treats missing data as good.
//
// Experimental: its identifiers may change in any minor release, see
// docs/compatibility.md.
package lint
