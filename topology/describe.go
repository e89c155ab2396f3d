package topology

import (
	"fmt"
	"strings"

	"github.com/millrace-streams/millrace/processor"
)

// Describe returns the topology as text, in the manner of Kafka Streams' TopologyDescription: sub-topologies, their nodes
// with topics and stores, the nodes below each (-->) and above it (<--). Equal declarations have equal descriptions.
// Repartition topics are shown as on the broker, with <app> for the application's id.
func (t *Topology) Describe() string {
	var out strings.Builder
	out.WriteString("Topologies:\n")
	for _, s := range t.specs {
		fmt.Fprintf(&out, "  Sub-topology: %d\n", s.ID)
		above := parents(s)
		for i, n := range s.Nodes {
			fmt.Fprintf(&out, "    %s\n", describeNode(n))
			if n.Kind != processor.KindSink {
				fmt.Fprintf(&out, "      --> %s\n", names(s, n.Children))
			}
			if n.Kind != processor.KindSource {
				fmt.Fprintf(&out, "      <-- %s\n", names(s, above[i]))
			}
		}
	}
	for _, g := range t.globals {
		fmt.Fprintf(&out, "  Global table: %s (topic: %s)\n", g.Name, g.Topic.Name)
	}
	return out.String()
}

func describeNode(n *processor.Node) string {
	switch n.Kind {
	case processor.KindSource:
		return fmt.Sprintf("Source: %s (topics: [%s])", n.Name, n.Topic.Physical("<app>"))
	case processor.KindSink:
		return fmt.Sprintf("Sink: %s (topic: %s)", n.Name, n.Topic.Physical("<app>"))
	}
	if len(n.Globals) > 0 {
		return fmt.Sprintf("Processor: %s (stores: [%s], global tables: [%s])", n.Name, strings.Join(n.Stores, ", "), strings.Join(n.Globals, ", "))
	}
	return fmt.Sprintf("Processor: %s (stores: [%s])", n.Name, strings.Join(n.Stores, ", "))
}

// parents returns the parents of each node.
func parents(s *processor.Spec) [][]int {
	above := make([][]int, len(s.Nodes))
	for i, n := range s.Nodes {
		for _, c := range n.Children {
			above[c] = append(above[c], i)
		}
	}
	return above
}

func names(s *processor.Spec, nodes []int) string {
	if len(nodes) == 0 {
		return "none"
	}
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = s.Nodes[n].Name
	}
	return strings.Join(list, ", ")
}

// Mermaid returns the topology as a flowchart in Mermaid's language, which GitHub and many editors draw: a box for each
// sub-topology, its nodes, its stores as cylinders, and between the boxes the topics. Equal declarations have equal charts.
func (t *Topology) Mermaid() string {
	m := mermaid{topics: map[processor.Topic]string{}, globals: map[string]string{}}
	m.out.WriteString("flowchart TD\n")
	for _, topic := range append(t.SourceTopics(), t.SinkTopics()...) {
		if m.topics[topic] == "" {
			m.topics[topic] = fmt.Sprintf("t%d", len(m.topics))
			fmt.Fprintf(&m.out, "  %s[/\"%s\"/]\n", m.topics[topic], topic.Physical("&lt;app&gt;"))
		}
	}
	for i, g := range t.globals {
		topic, table := fmt.Sprintf("gt%d", i), fmt.Sprintf("g%d", i)
		fmt.Fprintf(&m.out, "  %s[/\"%s\"/] --> %s[(\"%s\")]\n", topic, g.Topic.Name, table, g.Name)
		m.globals[g.Name] = table
	}
	for _, s := range t.specs {
		m.subtopology(s)
	}
	m.out.WriteString(m.edges.String())
	return m.out.String()
}

type mermaid struct {
	out    strings.Builder
	edges  strings.Builder // between boxes, written after them
	topics map[processor.Topic]string
	// globals are the names of the global tables' nodes
	globals map[string]string
}

func (m *mermaid) subtopology(s *processor.Spec) {
	fmt.Fprintf(&m.out, "  subgraph s%d[\"Sub-topology %d\"]\n", s.ID, s.ID)
	stores := map[string]string{}
	for i, st := range s.Stores {
		stores[st.Name] = fmt.Sprintf("s%d_%d", s.ID, i)
		fmt.Fprintf(&m.out, "    %s[(\"%s\")]\n", stores[st.Name], st.Name)
	}
	for i, n := range s.Nodes {
		fmt.Fprintf(&m.out, "    n%d_%d[\"%s\"]\n", s.ID, i, n.Name)
	}
	for i, n := range s.Nodes {
		for _, c := range n.Children {
			fmt.Fprintf(&m.out, "    n%d_%d --> n%d_%d\n", s.ID, i, s.ID, c)
		}
		for _, st := range n.Stores {
			fmt.Fprintf(&m.out, "    n%d_%d --- %s\n", s.ID, i, stores[st])
		}
		for _, g := range n.Globals {
			fmt.Fprintf(&m.edges, "  n%d_%d --- %s\n", s.ID, i, m.globals[g])
		}
		switch n.Kind {
		case processor.KindSource:
			fmt.Fprintf(&m.edges, "  %s --> n%d_%d\n", m.topics[n.Topic], s.ID, i)
		case processor.KindSink:
			fmt.Fprintf(&m.edges, "  n%d_%d --> %s\n", s.ID, i, m.topics[n.Topic])
		}
	}
	m.out.WriteString("  end\n")
}
