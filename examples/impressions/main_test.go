package main

import (
	"testing"

	"github.com/millrace-streams/millrace/examples/internal/exampletest"
)

const want = about + `

reads:  impressions, ad-clicks
writes: ad-outcomes

09:00  i1  shoes on /news
09:01  i2  hats on /news
09:02  i1  ann clicks
       => ad-outcomes  i1: shoes on /news was clicked by ann after 2 minutes
09:05  i3  bob clicks         (the click overtakes its impression)
09:03  i3  shoes on /sports   (out of order: its click is already here)
       => ad-outcomes  i3: shoes on /sports was clicked by bob after 2 minutes
09:06  i1  ann clicks         (a second click is a second outcome)
       => ad-outcomes  i1: shoes on /news was clicked by ann after 6 minutes
09:08  i4  boats on /sports
09:14  i5  hats on /weather   (09:01 was more than 12 minutes ago: i2 is given up)
       => ad-outcomes  i2: hats on /news was not clicked
09:10  i4  cid clicks         (out of order, but in time)
       => ad-outcomes  i4: boats on /sports was clicked by cid after 2 minutes
09:26  i5  dan clicks         (12 minutes after i5, 2 too many)
09:27  i6  shoes on /news     (09:14 was more than 12 minutes ago: i5 is given up)
       => ad-outcomes  i5: hats on /weather was not clicked
09:20  i5  eve clicks         (soon enough after i5, but it comes when i5 is given up already: dropped)

12 records in, 6 records out to ad-outcomes
`

func TestProgram(t *testing.T) {
	if got := exampletest.Run(t, parse, run); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
