package memory_test

import (
	"testing"

	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/store/storetest"
)

func TestBackend(t *testing.T) {
	t.Parallel()
	storetest.Run(t, memory.Opener{}, storetest.Features{})
}

func TestFieldReport44(t *testing.T) {
	t.Parallel()
	storetest.FieldReport44(t, memory.Opener{})
}

func TestFieldReport46(t *testing.T) {
	t.Parallel()
	storetest.FieldReport46(t, memory.Opener{})
}

func TestFieldReport24(t *testing.T) {
	t.Parallel()
	storetest.FieldReport24(t, memory.Opener{})
}

func TestFieldReport50(t *testing.T) {
	t.Parallel()
	storetest.FieldReport50(t, memory.Opener{})
}
