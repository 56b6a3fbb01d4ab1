// Package browser has the tests of the pages in a real browser, and no other code.
//
// They need Chromium of Debian (apt-get install --no-install-recommends chromium). Without it they are skipped;
// with HOLDFAST_BROWSER=required they fail then.
package browser
