package bolt_test

import (
	"testing"

	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/storetest"
)

// fast leaves out the syncs: no test here cuts the power.
var fast = bolt.Opener{Options: bolt.Options{NoSync: true}}

func TestBackend(t *testing.T) {
	t.Parallel()
	storetest.Run(t, fast, storetest.Features{Durable: true, CrashCopy: true})
}

func TestFieldReport44(t *testing.T) {
	t.Parallel()
	storetest.FieldReport44(t, fast)
}

func TestFieldReport46(t *testing.T) {
	t.Parallel()
	storetest.FieldReport46(t, fast)
}

func TestFieldReport24(t *testing.T) {
	t.Parallel()
	storetest.FieldReport24(t, fast)
}

func TestFieldReport50(t *testing.T) {
	t.Parallel()
	storetest.FieldReport50(t, fast)
}
