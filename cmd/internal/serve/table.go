// SPDX-License-Identifier: Apache-2.0

package serve

// Builtins returns the built-in webhooks: the only place that knows them all. Each is a folder and a file of
// this package. Mutating webhooks are called in this order.
func Builtins() []Builtin {
	return []Builtin{
		podDefaultBuiltin(),
		imagePullBuiltin(),
		serviceTypeBuiltin(),
		projectLimitBuiltin(),
		datasetBuiltin(),
		podTemplateBuiltin(),
	}
}
