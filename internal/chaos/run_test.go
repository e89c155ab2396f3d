package main

import (
	"context"
	"errors"
	"testing"
)

// Applications wait until all are ready, and do not wait for one that has failed.
func TestMeeting(t *testing.T) {
	t.Parallel()
	m := newMeeting(2)
	first := make(chan error)
	go func() { first <- m.join(t.Context()) }()
	if err := errors.Join(m.join(t.Context()), <-first); err != nil {
		t.Error(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	end(errOtherFailed)
	if err := newMeeting(2).join(ctx); !errors.Is(err, errOtherFailed) {
		t.Errorf("got %v", err)
	}
}
