package main

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
)

// sample returns some of a day's impressions and clicks in the order in which they come.
func (t topics) sample(day time.Time) []example.Input {
	var all []example.Input
	shown := func(minute time.Duration, id, ad, page, remark string) {
		at := day.Add(9*time.Hour + minute*time.Minute)
		says := fmt.Sprintf("%s  %s  %s on %s", example.Clock(at), id, ad, page)
		all = append(all, example.Value(t.impressions, id, Impression{ad, page, at}, says, remark))
	}
	click := func(minute time.Duration, id, user, remark string) {
		at := day.Add(9*time.Hour + minute*time.Minute)
		says := fmt.Sprintf("%s  %s  %s clicks", example.Clock(at), id, user)
		all = append(all, example.Value(t.clicks, id, Click{user, at}, says, remark))
	}
	shown(0, "i1", "shoes", "/news", "")
	shown(1, "i2", "hats", "/news", "")
	click(2, "i1", "ann", "")
	click(5, "i3", "bob", "the click overtakes its impression")
	shown(3, "i3", "shoes", "/sports", "out of order: its click is already here")
	click(6, "i1", "ann", "a second click is a second outcome")
	shown(8, "i4", "boats", "/sports", "")
	shown(14, "i5", "hats", "/weather", "09:01 was more than 12 minutes ago: i2 is given up")
	click(10, "i4", "cid", "out of order, but in time")
	click(26, "i5", "dan", "12 minutes after i5, 2 too many")
	shown(27, "i6", "shoes", "/news", "09:14 was more than 12 minutes ago: i5 is given up")
	click(20, "i5", "eve", "soon enough after i5, but it comes when i5 is given up already: dropped")
	return all
}
