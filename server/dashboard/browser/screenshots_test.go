package browser

import (
	"bytes"
	"cmp"
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
)

// pictured are the pages that the documents show, by the names of their files.
var pictured = map[string]string{
	"overview": "overview", "classes": "classes", "objects": "objects?class=bell", "object": "object?class=bell&name=tower", "recoveries": "recoveries",
	"jobs": "jobs", "run": "job?class=order&name=4711", "pool": "pool?pool=thumb", "task": "task?pool=thumb&task=0-1", "dead": "dead", "backups": "backups", "audit": "audit",
}

// Each page of the documents shows itself in a light and a dark picture. HOLDFAST_SCREENSHOTS names the directory to
// keep them in:
//
//	HOLDFAST_SCREENSHOTS=$PWD/docs/pages go test -run Screenshots ./server/dashboard/browser
func TestScreenshots(t *testing.T) {
	dir := cmp.Or(os.Getenv("HOLDFAST_SCREENSHOTS"), t.TempDir())
	s := furnish(newProfile(t, "light"))
	b := s.signIn("overview")
	b.do(chromedp.EmulateViewport(width, height))
	for name, page := range pictured {
		b.visit(s.url(page))
		if name != "audit" && name != "backups" { // which are of one moment
			b.until(live)
		}
		brightness := map[string]float64{}
		for _, scheme := range []string{"light", "dark"} {
			b.media(scheme)
			file, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), file, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if brightness[scheme], err = checkPicture(file); err != nil {
				t.Errorf("%s, %s: %v", name, scheme, err)
			}
		}
		if light, dark := brightness["light"], brightness["dark"]; light < 0.6 || dark > 0.4 {
			t.Errorf("%s: the light picture has a brightness of %.2f, and the dark one of %.2f", name, light, dark)
		}
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
