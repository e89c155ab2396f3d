package processor_test

import (
	"errors"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// A store that cannot be read is no fault of the record in work: no policy lets it pass, and nothing of it is committed,
// even if the processor takes no notice.
func TestUnreadableStoreIsNoBadRecord(t *testing.T) {
	for name, heed := range map[string]bool{"returned": true, "ignored": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, processor.DeadLetter("dead"), func(ctx *context, view *store.KeyValueView[string, string], rec record) error {
				if _, _, err := view.Get(rec.Value); err != nil && heed {
					return err
				}
				return ctx.Forward(rec)
			})
			r.send("in-a", 0, "fine")
			if _, err := r.Run(0, 10); err != nil {
				t.Fatal(err)
			}
			r.commit(t)
			r.layers.Committed(1)
			if err := r.layers.Backend().Close(); err != nil { // as good as any way to break it
				t.Fatal(err)
			}
			r.send("in-a", 1, "lost")
			_, err := r.Run(0, 10)
			var c processor.Commit
			if !heed {
				if err != nil {
					t.Fatal(err)
				}
				err = r.Prepare(&c)
			}
			var e *processor.RecordError
			if !errors.As(err, &e) || !errors.Is(err, store.ErrClosed) {
				t.Fatalf("got %v, want a RecordError of a store that is closed", err)
			}
			if len(c.Records)+len(c.Positions)+len(c.Writes) > 0 {
				t.Fatalf("prepared %+v", c)
			}
		})
	}
}
