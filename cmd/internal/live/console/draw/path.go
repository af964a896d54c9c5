// SPDX-License-Identifier: Apache-2.0

package draw

// A Stage is a part of a request's way through admission.
type Stage struct {
	Title string
	// Serial stations are called one after the other, and the others at the same time.
	Serial   bool
	Stations []Station
}

// A Station is a webhook, a policy or the API server itself.
type Station struct {
	Name, Note string
	// Class is the state: ok, note, fix or quiet.
	Class string
	// Origins are the colors of what changed the object there, with names.
	Origins []Origin
	// Reinvoked is set if it is called again after later changes.
	Reinvoked bool
}

// An Origin is what changed an object. Color is what [OriginClass] takes.
type Origin struct {
	Name  string
	Color int
}

const (
	columnWidth, columnGap = 172, 28
	maxStations            = 12 // of a stage; the table has all
)

// Path draws the way of a request from left to right: a column for each stage, between the request and the
// store.
func Path(label string, stages []Stage) string {
	c := &canvas{}
	x, middle := 0, 76
	c.rect(x, middle-20, 76, 40, "station")
	c.text(x+12, middle+4, 76, "name", "Request")
	x += 76
	for _, stage := range stages {
		c.arrow(x+4, middle, x+columnGap-4)
		x += columnGap
		c.column(x, stage)
		x += columnWidth
	}
	c.arrow(x+4, middle, x+columnGap-4)
	x += columnGap
	c.rect(x, middle-20, 76, 40, "station")
	c.text(x+14, middle+4, 76, "name", "Stored")
	c.width, c.height = x+78, max(c.height, middle+26)
	return c.svg(label)
}

func (c *canvas) column(x int, stage Stage) {
	c.text(x, 14, columnWidth, "title", stage.Title)
	order := "at the same time"
	if stage.Serial {
		order = "one after the other"
	}
	switch len(stage.Stations) {
	case 0:
		c.text(x, 32, columnWidth, "note", "none")
		c.rect(x, 56, columnWidth, 40, "empty")
	case 1:
	default:
		c.text(x, 32, columnWidth, "note", order)
	}
	y, first, last := 48, -1, 0
	for i, station := range stage.Stations {
		if i == maxStations {
			c.text(x, y+lineHeight, columnWidth, "note", plural(len(stage.Stations)-i, "more is in the table", "more are in the table"))
			y += 2 * lineHeight
			break
		}
		height := 44 + lineHeight*len(station.Origins)
		c.rect(x, y, columnWidth, height, "station "+station.Class)
		c.text(x+10, y+18, columnWidth-16, "name", station.Name)
		c.text(x+10, y+34, columnWidth-16, "note", station.Note)
		for j, origin := range station.Origins {
			at := y + 40 + j*lineHeight
			c.rect(x+10, at, 10, 10, OriginClass(origin.Color))
			c.text(x+26, at+9, columnWidth-34, "note", origin.Name)
		}
		if station.Reinvoked && first < 0 {
			first = y + height/2
		}
		if last = y + height; stage.Serial && i+1 < min(len(stage.Stations), maxStations) {
			c.add(`<path class="edge" d="M%d %dv8m-4 -4l4 4l4 -4"/>`, x+columnWidth/2, last+1)
		}
		y = last + 12
	}
	if first >= 0 && len(stage.Stations) > 1 { // called again after the last one
		c.add(`<path class="edge again" d="M%d %dq16 0 16 %dq0 %d -16 %dm5 -4l-5 4l5 4"><title>called again after later changes</title></path>`,
			x+columnWidth, last-10, -8, first-last+18, first-last+18)
	}
	c.height = max(c.height, y+4)
}
