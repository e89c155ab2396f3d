package testdriver

import "time"

// Now returns the driver's clock.
func (d *Driver) Now() time.Time { return d.now }

// Advance moves the clock on. Wall-clock punctuations fire one after the other, each at the time for which it is due, as
// they would in an application while that time passes; what they forward is followed to the end, through repartition
// topics too, before the clock moves on. With [Manual] the clock jumps, and what is due fires once in the turn that follows.
func (d *Driver) Advance(by time.Duration) {
	d.helper()
	end := d.now.Add(by)
	if d.cfg.manual {
		d.now = end
		return
	}
	for d.Settle(); d.worker != nil; d.Settle() {
		at, scheduled := d.worker.NextPunctuation()
		if !scheduled || at.After(end) {
			break
		}
		d.now = at.In(d.now.Location())
	}
	d.now = end
	d.settle()
}
