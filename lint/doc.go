// SPDX-License-Identifier: Apache-2.0

// Package lint finds what is wrong with webhook configurations, and with what stands
// behind them: conversion stanzas of CustomResourceDefinitions, Services, workloads,
// certificates and rights.
//
// It reads objects, from files or from a cluster, and calls nobody. Each rule is in a
// file of its own; [Rules] lists them in the order of the catalogue. A rule that lacks
// something it would have to see says so in [Report.Skipped]; no rule takes what it
// does not see for good.
//
// Experimental: its identifiers may change in any minor release, see docs/compatibility.md.
package lint
