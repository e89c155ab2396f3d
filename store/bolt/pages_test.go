package bolt_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/store"
)

// image is a store file after one of its batches, and what it holds then.
type image struct {
	data   []byte
	offset int64
	held   map[string]string
}

// history is a small file in the course of its life: inserts all over, values that
// change, values with overflow pages, deletes that empty pages, free pages. In the
// end one value changes again and again, so that its leaf comes back to pages that
// have older images of it.
func history(t *testing.T, rng *rand.Rand) []image {
	t.Helper()
	dir := t.TempDir()
	b := open(t, fast, dir)
	held := map[string]string{}
	var images []image
	for round := range int64(12) {
		w := store.NewWriteSet()
		if round >= 7 {
			held["k0100"] = fmt.Sprint(round)
			w.Put([]byte("k0100"), []byte(held["k0100"]), 7, nil)
		}
		for i := 0; i < 150 && round < 7; i++ {
			key, value := fmt.Sprintf("k%04d", rng.IntN(800)), strings.Repeat("v", rng.IntN(60))
			switch {
			case rng.IntN(100) == 0:
				value = strings.Repeat("large", 1000+rng.IntN(2000))
			case rng.IntN(4) == 0, round == 5 && key < "k0400":
				w.Delete([]byte(key), 7, nil)
				delete(held, key)
				continue
			}
			value += fmt.Sprint(round)
			w.Put([]byte(key), []byte(value), 7, nil)
			held[key] = value
		}
		must(t, b.Apply(store.Batch{Entries: w.Entries(), Offset: round}))
		data, err := os.ReadFile(filepath.Join(dir, "s.db"))
		must(t, err)
		images = append(images, image{data, round, maps.Clone(held)})
	}
	return images
}

// survives opens a damaged file: it is refused, or it is wholly what it was at the
// offset it tells. It reports which.
func survives(t *testing.T, what string, images []image, data []byte) bool {
	t.Helper()
	b, _, err := openBytes(t, data)
	if err != nil {
		if !errors.Is(err, store.ErrCorrupt) {
			t.Fatalf("%s: %v", what, err)
		}
		return false
	}
	defer func() { must(t, b.Close()) }()
	pairs, err := b.Scan(nil, store.Range{}, 1<<20)
	must(t, err)
	offset, ok := b.Offset()
	var want map[string]string // nothing, if it begins afresh
	if ok {
		want = images[offset].held
	}
	if len(pairs) != len(want) {
		t.Fatalf("%s: %d entries at offset %d, want %d", what, len(pairs), offset, len(want))
	}
	for _, p := range pairs {
		if want[string(p.Key)] != string(p.Value) || p.Timestamp != 7 {
			t.Fatalf("%s: %q is %q at offset %d, want %q", what, p.Key, p.Value, offset, want[string(p.Key)])
		}
	}
	return true
}

// Whatever happens to a page, the store is as it was at the offset it tells, or it
// is refused. Pages have no checksums of their own.
func TestDamageOfAnyPage(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	images := history(t, rng)
	last := images[len(images)-1].data
	page := os.Getpagesize()
	n := len(last) / page
	damaged := func(at int, with []byte) []byte {
		d := slices.Clone(last)
		copy(d[at*page:], with)
		return d
	}
	whole := func(data []byte, at int) []byte { return data[at*page : (at+1)*page] }
	sound, refused := 0, 0
	try := func(what string, data []byte) {
		t.Helper()
		if survives(t, what, images, data) {
			sound++
		} else {
			refused++
		}
	}
	try("undamaged", last)
	for at := range n {
		here := fmt.Sprintf("page %d of %d, ", at, n)
		random := make([]byte, page)
		for i := range random {
			random[i] = byte(rng.Uint32())
		}
		other := rng.IntN(n)
		swapped := damaged(at, whole(last, other))
		copy(swapped[other*page:], whole(last, at))
		torn := 512 * (1 + rng.IntN(page/512-1))
		try(here+"zeroes", damaged(at, make([]byte, page)))
		try(here+"random bytes", damaged(at, random))
		try(here+"first part zeroes", damaged(at, make([]byte, torn)))
		try(here+"last part random", damaged(at, slices.Concat(whole(last, at)[:torn], random[torn:])))
		try(here+fmt.Sprint("swapped with ", other), swapped)
		try(here+"cut off here", last[:at*page])
		try(here+"cut off within", last[:at*page+torn])
		for bits := 0; bits < 5; bits++ {
			flipped := slices.Clone(whole(last, at))
			i := rng.IntN(page)
			flipped[i] ^= 1 << rng.IntN(8)
			try(here+fmt.Sprint("one bit of byte ", i), damaged(at, flipped))
		}
		for _, old := range images[:len(images)-1] {
			if end := (at + 1) * page; end <= len(old.data) && string(whole(old.data, at)) != string(whole(last, at)) {
				try(here+fmt.Sprint("as of offset ", old.offset), damaged(at, whole(old.data, at)))
				try(here+fmt.Sprint("torn between now and offset ", old.offset), damaged(at, whole(old.data, at)[:torn]))
			}
		}
	}
	t.Logf("%d pages: %d times whole, %d times refused", n, sound, refused)
	if sound < n/10 || refused < n {
		t.Errorf("this is not a file with used and free pages")
	}
}
