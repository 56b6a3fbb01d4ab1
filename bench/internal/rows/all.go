package rows

import (
	"fmt"
	"slices"
	"strings"
)

// table has the rows in their order.
var table = []struct {
	id    string
	cases func(Size) []*Case
}{
	{"P1", each(p1, p1Floor)}, {"P2", p2}, {"P3", p3}, {"P4", p4}, {"P5", p5}, {"P6", each(p6, p6Floor)}, {"P7", p7}, {"P8", p8}, {"P9", p9}, {"P10", p10},
	{"P11", p11}, {"P12", p12}, {"P13", p13}, {"P14", each(p14, p14Floor, p14Least)}, {"P15", each(p15, p15Floor)}, {"P16", p16}, {"P17", p17}, {"P18", p18}, {"P19", p19},
	{"P20", p20}, {"P21", p21}, {"P22", p22}, {"P23", each(p23, p23Due, p23Floor)}, {"P24", p24}, {"P25", p25}, {"P26", p26}, {"P27", p27}, {"P28", p28}, {"P29", p29}, {"P30", each(p30, p30Cold)},
	{"P31", p31}, {"P32", p32}, {"P33", p33}, {"P34", p34}, {"P35", p35}, {"P36", p36}, {"P37", p37}, {"P39", p39}, {"P42", p42}, {"P43", p43},
	{"P44", p44}, {"P45", p45}, {"P46", p46}, {"P47", p47}, {"P48", p48}, {"P49", p49}, {"P50", each(p50Paused, p50Killed)},
}

// each is the cases of all parts, in their order.
func each(parts ...func(Size) []*Case) func(Size) []*Case {
	return func(s Size) (cases []*Case) {
		for _, part := range parts {
			cases = append(cases, part(s)...)
		}
		return cases
	}
}

// IDs are the ids of all rows.
func IDs() []string {
	var ids []string
	for _, r := range table {
		ids = append(ids, r.id)
	}
	return ids
}

// Cases are the lines of some rows, by their ids with commas between; empty
// means all.
func Cases(ids string, s Size) ([]*Case, error) {
	var want []string
	for _, id := range strings.Split(ids, ",") {
		if id = strings.ToUpper(strings.TrimSpace(id)); id == "" {
			continue
		}
		if !slices.Contains(IDs(), id) {
			return nil, fmt.Errorf("row %q: there are P1 to P37, P39 and P42 to P50", id)
		}
		want = append(want, id)
	}
	var cases []*Case
	for _, r := range table {
		if len(want) == 0 || slices.Contains(want, r.id) {
			cases = append(cases, r.cases(s)...)
		}
	}
	return cases, nil
}
