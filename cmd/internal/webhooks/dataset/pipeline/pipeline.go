// SPDX-License-Identifier: Apache-2.0

// Package pipeline runs plugins one after the other on one thing, in an order that a file
// says. A plugin has a name and may have arguments; it changes the thing, and may end
// the pipeline.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Plugin changes a T. It is used from many goroutines at once, and keeps nothing of a T.
// If stop is true, those behind it are not asked. After an error, which may be one of the
// plugin or a decision of its webhook, what became of the T must not be used.
type Plugin[T any] interface {
	Mutate(ctx context.Context, target T) (stop bool, err error)
}

// Func is a function that is a [Plugin].
type Func[T any] func(ctx context.Context, target T) (stop bool, err error)

// Mutate calls f.
func (f Func[T]) Mutate(ctx context.Context, target T) (stop bool, err error) { return f(ctx, target) }

// Factory makes a plugin of its arguments, a YAML document, empty if there are none. The
// error reports all of their problems.
type Factory[T any] func(args string) (Plugin[T], error)

// Registry has the plugins there are, by name.
type Registry[T any] map[string]Factory[T]

// Names are those of all plugins, sorted.
func (r Registry[T]) Names() []string { return slices.Sorted(maps.Keys(r)) }

// Check tells what is wrong with a name; nil if there is a plugin of that name.
func (r Registry[T]) Check(name string) error {
	if r[name] == nil {
		return fmt.Errorf("there is no plugin %q: choose among %s", name, strings.Join(r.Names(), ", "))
	}
	return nil
}

// Build makes a pipeline of plugins in the order of their names, each with its arguments.
// The error reports all problems.
func (r Registry[T]) Build(names []string, args map[string]string) (Pipeline[T], error) {
	var c Pipeline[T]
	var errs []error
	for i, name := range names {
		if err := r.Check(name); err != nil {
			errs = append(errs, err)
			continue
		}
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("duplicate plugin %s", name))
			continue
		}
		plugin, err := r[name](args[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("arguments of %s: %w", name, err))
			continue
		}
		c = append(c, Step[T]{name, plugin})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// Step is a plugin in a pipeline.
type Step[T any] struct {
	Name   string
	Plugin Plugin[T]
}

// Pipeline are plugins in their order.
type Pipeline[T any] []Step[T]

// Run asks the plugins one after the other, until one stops the pipeline, has an error, or
// the context ends. After each that was asked, observe is told of it. The error names
// the plugin.
func (c Pipeline[T]) Run(ctx context.Context, target T, observe func(name string, stop bool, err error)) error {
	for _, step := range c {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("before plugin %s: %w", step.Name, err)
		}
		stop, err := step.Plugin.Mutate(ctx, target)
		observe(step.Name, stop, err)
		if err != nil {
			return fmt.Errorf("plugin %s: %w", step.Name, err)
		}
		if stop {
			return nil
		}
	}
	return nil
}
