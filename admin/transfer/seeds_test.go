package transfer_test

import _ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
