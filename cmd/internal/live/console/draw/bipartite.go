// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strconv"
)

// A Node of a map. Its column is where it stands.
type Node struct {
	Text, Class string
}

// An Edge leads from a node of a column to one of the next. Class may be "older".
type Edge struct {
	From, To int
	Class    string
}

const (
	nodeHeight, nodeGap    = 28, 8
	mapColumn, mapGap      = 230, 80
	maxNodes               = 30 // of a column; the table has all
	mapTop, mapLeftPadding = 28, 2
)

// Map draws columns of nodes from left to right with edges between neighbors: edges[i] lead from column i to
// column i+1.
func Map(label string, titles []string, columns [][]Node, edges [][]Edge) string {
	c := &canvas{}
	tallest := 0
	for _, nodes := range columns {
		tallest = max(tallest, min(len(nodes), maxNodes+1))
	}
	full := tallest * (nodeHeight + nodeGap)
	at := func(column, i int) (x, y int) { // the upper left corner; columns are centered
		count := min(len(columns[column]), maxNodes+1)
		return mapLeftPadding + column*(mapColumn+mapGap), mapTop + (full-count*(nodeHeight+nodeGap))/2 + min(i, maxNodes)*(nodeHeight+nodeGap)
	}
	for column, list := range edges {
		drawn := map[string]bool{}
		for _, e := range list {
			x1, y1 := at(column, e.From)
			x2, y2 := at(column+1, e.To)
			x1 += mapColumn
			path := fmt.Sprintf(`<path class="edge %s" d="M%d %dC%d %d %d %d %d %d"/>`, e.Class, x1, y1+nodeHeight/2, x1+mapGap/2, y1+nodeHeight/2, x2-mapGap/2, y2+nodeHeight/2, x2, y2+nodeHeight/2)
			if !drawn[path] {
				c.body.WriteString(path)
			}
			drawn[path] = true
		}
	}
	for column, nodes := range columns {
		c.text(mapLeftPadding+column*(mapColumn+mapGap), 14, mapColumn, "title", titles[column])
		for i, node := range nodes {
			x, y := at(column, i)
			if i == maxNodes {
				c.text(x+10, y+18, mapColumn, "note", plural(len(nodes)-maxNodes, "more is in the table", "more are in the table"))
				break
			}
			c.rect(x, y, mapColumn, nodeHeight, "station "+node.Class)
			c.text(x+10, y+18, mapColumn-16, "name", node.Text)
		}
	}
	c.width, c.height = len(columns)*mapColumn+(len(columns)-1)*mapGap+2*mapLeftPadding, mapTop+full
	return c.svg(label)
}

func plural(count int, one, many string) string {
	if count == 1 {
		return "1 " + one
	}
	return strconv.Itoa(count) + " " + many
}
