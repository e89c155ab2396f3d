package embedded

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// MarkRunning makes a copied directory look as if its broker had just been killed: the copy's pids.log is another file
// than the one that the intents name.
func MarkRunning(path string) error {
	d := &directory{path: path}
	in, err := lastIntent(d)
	if err != nil {
		return err
	}
	if in != nil {
		if _, in.PIDsFile, err = sizeAndInode(filepath.Join(d.data(), pidsLogName)); err != nil {
			return err
		}
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		sum := fmt.Sprintf("%08x\n", crc32.Checksum(text, castagnoli))
		if err := os.WriteFile(d.intent(in.Seq%2), append([]byte(sum), text...), 0o644); err != nil {
			return err
		}
	}
	return durableWrite(d.file(markerName), runningText())
}

// MarkFromAnotherBoot makes a directory look as if the machine had gone down.
func MarkFromAnotherBoot(path string) error {
	d := &directory{path: path}
	return durableWrite(d.file(markerName), "pid 1\nboot of another day\n")
}
