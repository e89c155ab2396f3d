package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
)

// groups.log and pids.log are entries of [length u32][crc32c u32][version u16][JSON], little-endian; length and checksum
// cover version and JSON.

const stateVersion = 1

// readStateLog returns the JSON of the file's whole entries and cuts what is behind them. kfake would append after a
// broken entry, and never read what it appended. An absent file is empty.
func readStateLog(path string) ([][]byte, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries [][]byte
	pos := 0
	for pos+10 <= len(raw) {
		length := int(binary.LittleEndian.Uint32(raw[pos:]))
		if length < 2 || pos+8+length > len(raw) {
			break
		}
		body := raw[pos+8 : pos+8+length]
		if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(raw[pos+4:]) {
			break
		}
		entries = append(entries, body[2:])
		pos += 8 + length
	}
	return entries, truncate(path, int64(pos))
}

func stateEntry(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	entry := make([]byte, 10, 10+len(text))
	entry = append(entry, text...)
	binary.LittleEndian.PutUint32(entry, uint32(2+len(text)))
	binary.LittleEndian.PutUint16(entry[8:], stateVersion)
	binary.LittleEndian.PutUint32(entry[4:], crc32.Checksum(entry[8:], castagnoli))
	return entry, nil
}

// producerEntry is an entry of pids.log, as far as we read and write it.
type producerEntry struct {
	Type  string `json:"type"`
	PID   int64  `json:"pid"`
	Epoch int16  `json:"epoch"`
	TxID  string `json:"txid,omitempty"`
}

// transactionalProducers returns the last epoch of each producer that has a transactional id.
func transactionalProducers(entries [][]byte) (map[int64]int16, error) {
	epochs := map[int64]int16{}
	for _, text := range entries {
		var e producerEntry
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, err
		}
		if _, known := epochs[e.PID]; known || e.TxID != "" {
			epochs[e.PID] = e.Epoch
		}
	}
	return epochs, nil
}

// fence moves every transactional producer to its next epoch, as a coordinator does when it ends a transaction by
// itself: a client that survived the broker must not commit what has been aborted.
func fence(path string, epochs map[int64]int16) error {
	var all []byte
	for _, pid := range slices.Sorted(maps.Keys(epochs)) {
		e, err := stateEntry(producerEntry{Type: "timeout", PID: pid, Epoch: min(epochs[pid], math.MaxInt16-1) + 1})
		if err != nil {
			return err
		}
		all = append(all, e...)
	}
	if len(all) == 0 {
		return nil
	}
	return appendFile(path, all)
}
