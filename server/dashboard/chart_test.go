package dashboard

import "testing"

// The newest minute of a chart is at the right, and the greatest count at the top.
func TestThroughput(t *testing.T) {
	c := Throughput{{Done: 3}, {Done: 8, Failed: 2}}
	if got := c.DoneLine(); got != "590,50 600,0" {
		t.Error(got)
	}
	if got := c.FailedLine(); got != "590,80 600,60" {
		t.Error(got)
	}
	if sum := c.Sum(); sum.Done != 11 || sum.Failed != 2 || c.Most() != 8 || (Throughput{{}}).Most() != 1 {
		t.Error(sum)
	}
}
