// Command wordcount counts the words of a topic's lines, exactly once.
//
// With -file it sends the file's lines, waits until all of them are counted and committed, prints word<TAB>count to
// standard output, highest count first, and exits. Without it, it runs until it is interrupted. Without -brokers it
// starts a Kafka of its own inside the process, so that nothing needs to be installed.
package main

import (
	"context"
	"io"
	"os"

	"github.com/millrace-streams/millrace/examples/internal/example"
)

// options are the command's flags.
type options struct {
	example.Options
	file, in, out string
}

func main() { example.Main("wordcount", parse, run) }

func parse(args []string) (o options, err error) {
	f := o.Flags("wordcount", "counts")
	f.StringVar(&o.file, "file", "", "count the lines of this `file`, print the result and exit; \"-\" is standard input")
	f.StringVar(&o.in, "in", "lines", "input `topic`; made with 4 partitions if it does not exist")
	f.StringVar(&o.out, "out", "word-counts", "output `topic`; made with 4 partitions if it does not exist")
	err = example.Parse(f, args)
	return o, err
}

// partitions of the topics that are made.
const partitions = 4

func run(ctx context.Context, o options, stdout io.Writer) error {
	if err := o.Check(); err != nil { // before anything is started
		return err
	}
	if _, err := os.Stat(o.file); o.file != "" && o.file != "-" && err != nil {
		return err
	}
	lines, counts := topics(o.in, o.out)
	topo, err := wordCount(lines, counts)
	if err != nil {
		return err
	}
	home, err := example.Open(o.Options)
	if err != nil {
		return err
	}
	defer home.Close()
	if err := home.Topics(partitions, o.in, o.out); err != nil {
		return err
	}
	if o.file == "" {
		return home.Run(ctx, topo)
	}
	err = home.While(ctx, topo, func(r *example.Running) error {
		if err := send(ctx, home, lines, o.file); err != nil {
			return err
		}
		return r.Settle(ctx, o.out)
	})
	if err != nil {
		return err
	}
	return printCounts(ctx, home, counts, stdout)
}
