// SPDX-License-Identifier: Apache-2.0

package poddefault

// OverlapOfCompiled is [Overlap] for objects of either kind that were compiled before:
// for those who compare many. Namespaces do not count.
func OverlapOfCompiled(a, b *Compiled) []string { return overlap(a, b) }
