package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
)

// Each page shows itself in a light and a dark picture, and docs/pages has three of them. HOLDFAST_SCREENSHOTS names
// the directory to keep all of them in:
//
//	mkdir -p out/pages
//	HOLDFAST_SCREENSHOTS=$PWD/out/pages go test -run Screenshots ./server/dashboard/browser
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("HOLDFAST_SCREENSHOTS")
	if dir == "" {
		prove.Only(t)
		dir = t.TempDir()
	}
	s := furnish(newProfile(t, "light"))
	b := s.open()
	b.do(chromedp.EmulateViewport(width, height))
	b.visit(s.url("overview"))
	b.until(`document.querySelector("[name=token]")`)
	taken := map[string]bool{}
	b.picture(dir, "signin", taken)
	s.signInOn(b, "overview")
	for _, stop := range s.tour() {
		b.visit(s.url(stop.at))
		b.picture(dir, stop.page, taken)
	}
	s.finishTour(b, func(at string) { b.picture(dir, at, taken) })
	for _, name := range templates(t) {
		if !taken[name] {
			t.Errorf("there is no picture of %s", name)
		}
	}
}

// picture takes the pictures of a page, if there are none yet.
func (b *tab) picture(dir, name string, taken map[string]bool) {
	b.t.Helper()
	if taken[name] {
		return
	}
	taken[name] = true
	b.until(live + ` || !document.querySelector("[hx-trigger=stale]")`)
	brightness := map[string]float64{}
	for _, scheme := range []string{"light", "dark"} {
		b.media(scheme)
		file, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), file, 0o644)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		if brightness[scheme], err = checkPicture(file); err != nil {
			b.t.Errorf("%s, %s: %v", name, scheme, err)
		}
	}
	if light, dark := brightness["light"], brightness["dark"]; light < 0.6 || dark > 0.4 {
		b.t.Errorf("%s: the light picture has a brightness of %.2f, and the dark one of %.2f", name, light, dark)
	}
}

// The size of a picture, and how many bytes its file has at most, because the documents are a part of the repository.
const (
	width, height = 1000, 760
	pictureBytes  = 100 << 10
)

// checkPicture returns how bright a picture is, from 0 to 1, or the first mistake in it.
func checkPicture(file []byte) (brightness float64, err error) {
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return 0, err
	}
	if size := picture.Bounds().Size(); size != image.Pt(width, height) || len(file) > pictureBytes {
		return 0, fmt.Errorf("it has %v pixels in %d bytes", size, len(file))
	}
	greys := map[uint8]int{}
	for y := range height {
		for x := range width {
			grey := color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y
			greys[grey]++
			brightness += float64(grey) / 255
		}
	}
	if most := slices.Max(slices.Collect(maps.Values(greys))); len(greys) < 16 || most > width*height*99/100 {
		return 0, fmt.Errorf("it has %d shades, and one of them in %d pixels: a page has text", len(greys), most)
	}
	return brightness / (width * height), nil
}

// A picture without a page on it is refused.
func TestBadPicturesAreSeen(t *testing.T) {
	blank := image.NewGray(image.Rect(0, 0, width, height))
	small := image.NewGray(image.Rect(0, 0, width, height-1))
	for text, picture := range map[string]image.Image{"1 shades": blank, "(1000,759) pixels": small} {
		var file bytes.Buffer
		if err := png.Encode(&file, picture); err != nil {
			t.Fatal(err)
		}
		if _, err := checkPicture(file.Bytes()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	if _, err := checkPicture([]byte("<html>")); err == nil {
		t.Error("text is taken for a picture")
	}
}
