// SPDX-License-Identifier: Apache-2.0

// Command promql reads files of alerts (PrometheusRule, YAML) and dashboards (Grafana,
// JSON), parses every query in them with Prometheus' own parser, and prints the names
// of the metrics that are asked for, one a line. It ends with 1 if a query cannot be
// parsed, or a file has none.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

func main() {
	names, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(names, "\n"))
}

// run returns the names, sorted. The error reports all problems.
func run(files []string) ([]string, error) {
	if len(files) == 0 {
		return nil, errors.New("which files? name some PrometheusRules or dashboards")
	}
	names := map[string]bool{}
	var errs []error
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var tree any
		if err := yaml.Unmarshal(data, &tree); err != nil { // JSON is YAML
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
			continue
		}
		queries := find(tree)
		if len(queries) == 0 {
			errs = append(errs, fmt.Errorf("%s: there is no query", file))
		}
		for _, query := range queries {
			found, err := metrics(query)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", file, query, err))
			}
			for _, name := range found {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), errors.Join(errs...)
}

// find returns the texts of all fields named expr, which both kinds of file have.
func find(tree any) []string {
	var out []string
	switch node := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if text, ok := node[key].(string); ok && key == "expr" {
				out = append(out, text)
				continue
			}
			out = append(out, find(node[key])...)
		}
	case []any:
		for _, element := range node {
			out = append(out, find(element)...)
		}
	}
	return out
}

// metrics are those that a query selects. Every selector must name one.
func metrics(query string) ([]string, error) {
	for variable, value := range map[string]string{"$__rate_interval": "5m", "$__range": "1h"} { // Grafana's
		query = strings.ReplaceAll(query, variable, value)
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, err
	}
	var names []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name := selector.Name
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name == model.MetricNameLabel && matcher.Type == labels.MatchEqual {
				name = matcher.Value
			}
		}
		if name == "" {
			err = errors.Join(err, fmt.Errorf("%s names no metric", selector))
		}
		names = append(names, name)
		return nil
	})
	return names, err
}
