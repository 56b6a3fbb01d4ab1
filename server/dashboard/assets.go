package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
)

// Asset is a file that pages refer to.
type Asset struct {
	Kind    string // the media type
	Version string // changes with Body
	Body    []byte
}

//go:embed asset
var files embed.FS

// assets are the assets by their routes, such as asset/page.css.
var assets = readAssets()

func readAssets() map[string]Asset {
	entries, err := files.ReadDir("asset")
	if err != nil {
		panic(err) // the files are part of the program
	}
	all := make(map[string]Asset)
	for _, e := range entries {
		at := path.Join("asset", e.Name())
		body, err := files.ReadFile(at)
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		all[at] = Asset{kinds[path.Ext(at)], hex.EncodeToString(sum[:8]), body}
	}
	return all
}

// kinds are the media types by the ends of names, because those of package mime depend on the machine.
var kinds = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// FindAsset returns the asset with a file name, for example page.css, and whether there is one.
func FindAsset(name string) (Asset, bool) {
	a, ok := assets["asset/"+name]
	return a, ok
}
