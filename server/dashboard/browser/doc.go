// Package browser contains the dashboard's tests in a real browser, and no other code.
//
// They run with HOLDFAST_BROWSER=required and need Debian's Chromium (apt-get install
// --no-install-recommends chromium). Otherwise they are skipped.
package browser
