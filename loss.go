package millrace

import (
	"github.com/millrace-streams/millrace/internal/kafka"
	"github.com/millrace-streams/millrace/internal/runtime"
)

// LostInput says what to do about an input whose log does not hold the committed offset any more: records were deleted, by
// retention or by hand, before they were processed.
type LostInput = kafka.LostInput

// What to do about lost input.
const (
	// RefuseLostInput ends Run with a *LostInputError. It is the default.
	RefuseLostInput = kafka.RefuseLostInput
	// EarliestLostInput goes on with the oldest record that is left.
	EarliestLostInput = kafka.EarliestLostInput
	// LatestLostInput goes on with the records to come.
	LatestLostInput = kafka.LatestLostInput
)

// LostState says what to do about a changelog that does not hold what its store held.
type LostState = kafka.LostState

// What to do about lost state.
const (
	// RefuseLostState ends Run with a *LostStateError. It is the default.
	RefuseLostState = kafka.RefuseLostState
	// EmptyLostState goes on from the committed positions, with a store that holds what the changelog holds, if anything.
	EmptyLostState = kafka.EmptyLostState
)

// What Run ends with when Kafka has lost something that the application stands on. See docs/operations.md.
type (
	// LostInputError is a committed offset that the input's log does not hold.
	LostInputError = kafka.LostInputError
	// LostOffsetsError is a task with state for whose inputs the group has no committed offsets.
	LostOffsetsError = kafka.LostOffsetsError
	// LostStateError is a changelog that does not hold what its store held.
	LostStateError = runtime.LostStateError
)
