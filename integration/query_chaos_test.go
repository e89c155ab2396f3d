//go:build chaos

package integration

import (
	"testing"

	"github.com/millrace-streams/millrace"
)

// TestFieldReport45 at its full size: the store's file outgrows what is mapped of it while a scan stands still.
func TestFieldReport45InFull(t *testing.T) {
	onBackends(t, func(t *testing.T, cfg millrace.Config) { slowScan(t, cfg, 72<<20) })
}
