package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// sick is a disk that fails for a while, from the first time that the process notices.
type sick struct {
	victim
	how  string
	time time.Duration
}

func drawSick(r *rand.Rand) fault {
	f := sick{anyone(r), []string{diskFull, diskFull, diskBad, diskCorrupt}[r.IntN(4)], 0}
	if r.IntN(2) == 0 {
		f.time = between(r, 0, 2*time.Second)
	}
	return f
}

func (f sick) kind() string   { return "disk " + f.how }
func (f sick) String() string { return fmt.Sprintf("disk %s, for %v", f.how, f.time) }

func (f sick) strike(ctx context.Context, e *experiment) bool {
	s, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	defer s.excuse(causeDisk)()
	if err := setDisk(s.assign.DiskFile, f.how); err != nil {
		e.story.fail("%v", err)
		return false
	}
	met := l.hears(ctx, diskFailed, metWithin)
	if met {
		wait(ctx, f.time)
	}
	if err := setDisk(s.assign.DiskFile, ""); err != nil {
		e.story.fail("%v", err)
	}
	return met
}

// damaged is a kill -9 after which a store's file is not what it was.
type damaged struct {
	victim
	how  string
	seed uint64
}

// Ways to damage a file.
const (
	damageMeta  = "both meta pages"
	damageHalf  = "cut in half"
	damageEmpty = "emptied"
	damageGone  = "deleted"
	damagePage  = "a page"
)

func drawDamaged(r *rand.Rand) fault {
	return damaged{anyone(r), []string{damageMeta, damageHalf, damageEmpty, damageGone}[r.IntN(4)], r.Uint64()}
}

func drawTorn(r *rand.Rand) fault { return damaged{anyone(r), damagePage, r.Uint64()} }

func (f damaged) kind() string   { return "store's file damaged: " + f.how }
func (f damaged) String() string { return f.kind() }

func (f damaged) strike(ctx context.Context, e *experiment) bool {
	s, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	done := make(chan bool, 1)
	s.change(func() { s.meddle = func() { done <- f.damage(e, s) } })
	l.kill()
	select {
	case met := <-done:
		return met
	case <-time.After(metWithin): // it is not wanted any more
	case <-ctx.Done():
	}
	return false
}

// damage changes one of the files of a process that does not run.
func (f damaged) damage(e *experiment, s *slot) bool {
	files := storeFiles(s.assign.StateDir)
	if len(files) == 0 {
		return false
	}
	r := rand.New(rand.NewPCG(f.seed, 0))
	path := files[r.IntN(len(files))]
	if err := damageFile(r, path, f.how); err != nil {
		e.story.fail("%v", err)
		return false
	}
	e.tell("%s: %s of %s", s, f.how, path)
	return true
}

func storeFiles(dir string) (files []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".db" {
			files = append(files, path)
		}
		return nil
	})
	return files
}

func damageFile(r *rand.Rand, path, how string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	page := int64(os.Getpagesize())
	garbage := make([]byte, page)
	for i := range garbage {
		garbage[i] = byte(r.Uint32())
	}
	switch how {
	case damageHalf:
		return os.Truncate(path, info.Size()/2)
	case damageEmpty:
		return os.Truncate(path, 0)
	case damageGone:
		return os.Remove(path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if how == damageMeta {
		_, err = f.WriteAt(append(garbage, garbage...), 0)
	} else if pages := info.Size() / page; pages > 2 {
		_, err = f.WriteAt(garbage, (2+r.Int64N(pages-2))*page)
	}
	return errors.Join(err, f.Close())
}

// homeless is a kill -9 after which the process finds nothing of its own any more, its id included.
type homeless struct{ victim }

func drawHomeless(r *rand.Rand) fault { return homeless{anyone(r)} }

func (homeless) kind() string   { return "state directory lost" }
func (homeless) String() string { return "kill -9, state directory lost" }

func (f homeless) strike(ctx context.Context, e *experiment) bool {
	s, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	s.change(func() {
		s.meddle = func() {
			if err := os.RemoveAll(s.assign.StateDir); err != nil {
				e.story.fail("%v", err)
			}
		}
	})
	l.kill()
	return true
}
