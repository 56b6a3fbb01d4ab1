package main

import (
	"bytes"
	"image/color"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of every chart, and the space around it.
const (
	width  = 18 * vg.Centimeter
	height = 10 * vg.Centimeter
	margin = 14 // points
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

// colors are told apart by people with colour blindness too.
var colors = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff},
}

// typeface is a font with widths that the library knows; those after it in families
// have the same widths, or nearly.
const (
	typeface = "font-family:Liberation Sans"
	families = typeface + ",Arial,Helvetica,sans-serif"
)

// save draws the chart as an SVG file.
func (c chart) save(path string) error {
	p, err := c.plot()
	if err != nil {
		return err
	}
	canvas := vgsvg.New(width, height)
	canvas.SetColor(color.White)
	canvas.Fill(vg.Rectangle{Max: vg.Point{X: width, Y: height}}.Path())
	p.Draw(draw.Crop(draw.New(canvas), margin, -2*margin, margin, -margin))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	return os.WriteFile(path, bytes.ReplaceAll(svg.Bytes(), []byte(typeface), []byte(families)), 0o644)
}

func (c chart) plot() (*plot.Plot, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.Padding = vg.Points(8)
	p.BackgroundColor = color.White
	p.Legend.Top, p.Legend.Left = true, true
	c.axis(&p.X, c.logX)
	c.axis(&p.Y, c.logY)
	p.Add(plotter.NewGrid())
	if len(c.bars) > 0 {
		return p, c.addBars(p)
	}
	return p, c.addLines(p)
}

// axis sets scale and ticks.
func (c chart) axis(a *plot.Axis, log bool) {
	var ticks plot.Ticker = plot.DefaultTicks{}
	if log {
		a.Scale, ticks = plot.LogScale{}, plot.LogTicks{}
	}
	a.Tick.Marker = plot.TickerFunc(func(min, max float64) []plot.Tick {
		marks := ticks.Ticks(min, max)
		for i, m := range marks {
			if m.Label != "" {
				marks[i].Label = short(m.Value)
			}
		}
		return marks
	})
}

// short writes a number with at most three digits, with k for thousands and M for millions.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
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

// addBars draws the bars from the left, with the figure at the end of each.
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
	ends := plotter.XYLabels{}
	for i, v := range values {
		ends.XYs = append(ends.XYs, plotter.XY{X: v, Y: float64(i)})
		ends.Labels = append(ends.Labels, short(v))
	}
	labels, err := plotter.NewLabels(ends)
	if err != nil {
		return err
	}
	labels.Offset = vg.Point{X: vg.Points(4), Y: vg.Points(-4)}
	p.Add(bars, labels)
	p.NominalY(names...)
	p.Y.Padding = margin // for names in a wider typeface
	p.X.Min = 0
	p.X.Max *= 1.15 // room for the figures
	return nil
}
