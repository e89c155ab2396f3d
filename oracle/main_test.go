package oracle_test

import (
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }
