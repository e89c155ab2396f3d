package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millrace-streams/millrace/internal/topicread"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

// checkFiles compares every store's file that any process has left behind with the changelog up to the offset that the file
// holds: it must have all of that, and nothing that is not committed. No process may run. A file that says that it is damaged
// is none. It returns how many files there were, and what differs.
func checkFiles(ctx context.Context, k *kafka, a application, slots []*slot) (files int, wrong []string, err error) {
	logs := map[string]changelogOf{}
	for _, topic := range a.changelogs() {
		l := changelogOf{}
		if err := k.read(ctx, topic, func(r topicread.Record) { l[rowAt{r.Partition, string(r.Key)}] = lastRow{r.Offset, string(r.Value)} }); err != nil {
			return 0, nil, err
		}
		logs[topic] = l
	}
	for _, s := range slots {
		for _, path := range storeFiles(s.assign.StateDir) {
			local := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
			name, kind, _ := strings.Cut(local, "~")
			_, number, _ := strings.Cut(filepath.Base(filepath.Dir(path)), "_")
			partition, err := strconv.Atoi(number)
			if err != nil {
				return files, wrong, fmt.Errorf("%s: no task's folder: %w", path, err)
			}
			differences, held, err := checkFile(path, local, kind == "window", int32(partition), logs[a.topic(name+"-changelog")])
			if err != nil {
				return files, wrong, fmt.Errorf("%s: %w", path, err)
			}
			if held {
				files++
			}
			for _, d := range differences {
				wrong = append(wrong, path+": "+d)
			}
		}
	}
	return files, wrong, nil
}

// changelogOf is what a changelog holds last of each row.
type changelogOf map[rowAt]lastRow

type rowAt struct {
	partition int32
	key       string
}

type lastRow struct {
	offset int64
	value  string // "" after a tombstone
}

// checkFile compares one file. held is false if it holds nothing that is committed.
func checkFile(path, local string, window bool, partition int32, log changelogOf) (wrong []string, held bool, err error) {
	b, err := bolt.Opener{}.Open(filepath.Dir(path), local)
	if errors.Is(err, store.ErrCorrupt) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer b.Close()
	end, held := b.Offset()
	if !held {
		return nil, false, nil
	}
	pairs, err := b.Scan(nil, store.Range{}, 1<<30)
	if errors.Is(err, store.ErrCorrupt) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	got := map[string]string{}
	for _, p := range pairs {
		switch key := string(p.Key); {
		case !window:
			got[key] = string(p.Value)
		case key[0] == 0: // a row; the rest is an index
			got[key[1:]] = string(p.Value)
		}
	}
	switch {
	case window:
		return log.windows(partition, got, end), true, nil
	case local == "rows":
		return log.rows(partition, got, end), true, nil
	}
	return log.counts(partition, got, end), true, nil
}

// counts compares a store of counts: rows whose last count lies beyond the end are only known to be lower.
func (l changelogOf) counts(partition int32, got map[string]string, end int64) (wrong []string) {
	for key, value := range got {
		if last, ok := l[rowAt{partition, key}]; !ok {
			wrong = append(wrong, fmt.Sprintf("%q is %d at offset %d, and not in the changelog", key, number([]byte(value)), end))
		} else if last.offset >= end && number([]byte(value)) >= number([]byte(last.value)) {
			wrong = append(wrong, fmt.Sprintf("%q is %d at offset %d, and %d in the changelog not before %d", key, number([]byte(value)), end, number([]byte(last.value)), last.offset))
		}
	}
	for row, last := range l {
		if value, ok := got[row.key]; row.partition == partition && last.offset < end && (!ok || value != last.value) {
			wrong = append(wrong, fmt.Sprintf("%q is %d at offset %d, and %d in the changelog at %d", row.key, number([]byte(value)), end, number([]byte(last.value)), last.offset))
		}
	}
	return wrong
}

// rows compares a store of a table: of rows that change beyond the end nothing is known but that they are in the changelog.
func (l changelogOf) rows(partition int32, got map[string]string, end int64) (wrong []string) {
	for key, value := range got {
		if _, ok := l[rowAt{partition, key}]; !ok {
			wrong = append(wrong, fmt.Sprintf("%q is %q at offset %d, and not in the changelog", key, value, end))
		}
	}
	for row, last := range l {
		if row.partition == partition && last.offset < end && got[row.key] != last.value {
			wrong = append(wrong, fmt.Sprintf("%q is %q at offset %d, and %q in the changelog at %d", row.key, got[row.key], end, last.value, last.offset))
		}
	}
	return wrong
}

// windows compares a store of windows, of which no row is ever changed, and rows that are old enough may be gone.
func (l changelogOf) windows(partition int32, got map[string]string, end int64) (wrong []string) {
	newest := int64(-1)
	for row, last := range l {
		if row.partition == partition && last.offset < end {
			newest = max(newest, startOf(row.key))
		}
	}
	for key, value := range got {
		if last, ok := l[rowAt{partition, key}]; !ok || last.offset >= end || last.value != value {
			wrong = append(wrong, fmt.Sprintf("row %q=%q at offset %d is %q in the changelog at %d", key, value, end, last.value, last.offset))
		}
	}
	for row, last := range l {
		if row.partition != partition || last.offset >= end || startOf(row.key) <= newest-joinRetention.Milliseconds() {
			continue
		}
		if _, ok := got[row.key]; !ok {
			wrong = append(wrong, fmt.Sprintf("row %q=%q of the changelog at %d is missing at offset %d", row.key, last.value, last.offset, end))
		}
	}
	return wrong
}

// startOf returns the start in a row's key.
func startOf(key string) int64 {
	if len(key) < 12 {
		return -1
	}
	return int64(binary.BigEndian.Uint64([]byte(key[len(key)-12:])))
}
