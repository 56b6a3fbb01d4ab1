package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The size of every chart.
const (
	width  = 16 * vg.Centimeter
	height = 10 * vg.Centimeter
)

// chart is one SVG file: lines over a common x, or bars.
type chart struct {
	file, title, x, y string
	logX, logY        bool
	lines             []line
	bars              []bar
}

type line struct {
	name   string
	points [][2]float64
	dashed bool // a reference
}

type bar struct {
	name  string
	value float64
}

// colors are told apart by those who see few of them.
var colors = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff},
}

// save draws the chart.
func (c chart) save(path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.Padding = vg.Points(8)
	p.BackgroundColor = color.White
	p.Legend.Top, p.Legend.Left = true, true
	if c.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if c.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Add(plotter.NewGrid())
	var err error
	if len(c.bars) > 0 {
		err = c.addBars(p)
	} else {
		err = c.addLines(p)
	}
	if err != nil {
		return err
	}
	return p.Save(width, height, path)
}

// addLines draws each line with a mark at each point. The y axis begins at zero,
// unless it is logarithmic, so that no difference looks larger than it is.
func (c chart) addLines(p *plot.Plot) error {
	for i, l := range c.lines {
		points := make(plotter.XYs, 0, len(l.points))
		for _, v := range l.points {
			points = append(points, plotter.XY{X: v[0], Y: v[1]})
		}
		drawn, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		drawn.Color = colors[i%len(colors)]
		marks.Color, marks.Shape, marks.Radius = drawn.Color, draw.CircleGlyph{}, vg.Points(1.5)
		if l.dashed {
			drawn.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(drawn, marks)
		p.Legend.Add(l.name, drawn, marks)
	}
	if !c.logY {
		p.Y.Min = 0
		p.Y.Max *= 1.25 // room for the legend
	} else {
		p.Y.Max *= 4
	}
	return nil
}

// addBars draws the bars from the left.
func (c chart) addBars(p *plot.Plot) error {
	values, names := make(plotter.Values, len(c.bars)), make([]string, len(c.bars))
	for i, b := range c.bars {
		values[len(c.bars)-1-i], names[len(c.bars)-1-i] = b.value, b.name // the first on top
	}
	bars, err := plotter.NewBarChart(values, vg.Points(14))
	if err != nil {
		return err
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, colors[0], 0
	p.Add(bars)
	p.NominalY(names...)
	p.X.Min = 0
	p.X.Max *= 1.1
	return nil
}
