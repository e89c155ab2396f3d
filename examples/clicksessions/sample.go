package main

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
)

// sample returns a day's clicks in the order in which they come.
func (t topics) sample(day time.Time) []example.Input {
	var all []example.Input
	click := func(hour, minute time.Duration, user, page, remark string) {
		at := day.Add(hour*time.Hour + minute*time.Minute)
		says := fmt.Sprintf("%s  %s  %s", example.Clock(at), user, page)
		all = append(all, example.Value(t.clicks, user, Click{page, at}, says, remark))
	}
	click(9, 0, "ann", "/home", "")
	click(9, 3, "bob", "/news", "")
	click(9, 7, "ann", "/shoes", "")
	click(9, 45, "bob", "/weather", "42 minutes after bob's last click: a new visit, and the old one is over")
	click(9, 12, "ann", "/cart", "out of order, but in time: ann's visit is still open")
	click(9, 50, "cid", "/home", "")
	click(10, 25, "cid", "/help", "35 minutes after cid's last click: a new visit; and ann's is over now")
	click(9, 20, "ann", "/pay", "too late for ann's visit")
	click(10, 8, "cid", "/shoes", "out of order, between cid's two visits: they become one")
	click(10, 40, "bob", "/news", "")
	click(11, 30, "dan", "/home", "ends what is older than 40 minutes; dan's own visit is still open")
	return all
}
