package main

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
)

// sample returns a day's payments in the order in which they come.
func (t topics) sample(day time.Time) []example.Input {
	var all []example.Input
	payment := func(hour, minute time.Duration, account, id string, amount int64, remark string) {
		at := day.Add(hour*time.Hour + minute*time.Minute)
		says := fmt.Sprintf("%s  %s %s: %d", example.Clock(at), account, id, amount)
		all = append(all, example.Value(t.in, account, Payment{id, amount, at}, says, remark))
	}
	payment(9, 0, "ann", "p1", 30, "")
	payment(9, 1, "bob", "p2", 12, "")
	payment(9, 2, "ann", "p1", 30, "sent again: dropped")
	payment(9, 10, "ann", "p3", 30, "the same amount, but another payment")
	payment(9, 40, "ann", "p1", 30, "and again, 40 minutes after the first: dropped")
	payment(9, 45, "bob", "p4", 7, "")
	payment(9, 41, "bob", "p4", 7, "the original is overtaken by its repetition: dropped")
	payment(10, 0, "ann", "p1", 55, "an hour after the first: the id counts as a new one")
	return all
}
