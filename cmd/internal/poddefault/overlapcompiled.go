// SPDX-License-Identifier: Apache-2.0

package poddefault

// OverlapOfCompiled is [Overlap] for compiled objects of either kind, for callers that
// compare many. It ignores namespaces.
func OverlapOfCompiled(a, b *Compiled) []string { return overlap(a, b) }
