package kafka

import (
	"strconv"
	"strings"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
)

// A transaction that is open hides what was written behind it from readers, and holds up whoever takes over its tasks. Those
// of processes that are gone are aborted, rather than waited for until they time out: by taking their transactional ids,
// which does no harm to a process that should come back. Brokers before Kafka 3.0 cannot list transactions; there, and where
// the right is missing, the transaction timeout is sat out.

// abortLeftovers aborts the open transactions of the application's processes that are not members of the group, and those of
// this process that no worker of it has.
func (g *group) abortLeftovers() {
	c := g.cluster
	if c.cfg.Guarantee != eos.ExactlyOnce {
		return
	}
	own := newLines(c.conf)
	defer own.close()
	open := g.openTransactions(own)
	if len(open) == 0 {
		return
	}
	alive, err := g.processes(own)
	if err != nil {
		c.cfg.Logger.Debug("the members of the group cannot be had", "error", err)
		return
	}
	for _, id := range open {
		process, worker, ok := c.ownerOf(id)
		if !ok || process == c.cfg.ProcessID && g.staffs(worker) || process != c.cfg.ProcessID && alive[process] {
			continue
		}
		if err := c.take(own, id); err != nil {
			c.cfg.Logger.Debug("an open transaction of a process that is gone cannot be aborted", "transactional id", id, "error", err)
			continue
		}
		c.cfg.Logger.Info("aborted the open transaction of a process that is gone", "transactional id", id)
	}
}

// openTransactions returns the transactional ids of the application that have a transaction open.
func (g *group) openTransactions(own *lines) (ids []string) {
	c := g.cluster
	for _, known := range c.control.Brokers() {
		b, err := own.to(known.Addr())
		if err != nil {
			continue
		}
		req := sarama.NewListTransactionsRequest(c.conf.Version)
		req.StateFilters = []string{sarama.TransactionStateOngoing}
		resp, err := b.ListTransactions(req)
		if err == nil {
			err = code(resp.ErrorCode)
		}
		if err != nil {
			c.cfg.Logger.Debug("open transactions cannot be listed", "broker", known.Addr(), "error", err)
			continue
		}
		for _, tx := range resp.TransactionStates {
			if _, _, ok := c.ownerOf(tx.TransactionalID); ok {
				ids = append(ids, tx.TransactionalID)
			}
		}
	}
	return ids
}

// ownerOf takes a transactional id apart. It is one of the application's if what is between has the length of a process id:
// the ids of another application, whose name begins with this one's, are longer.
func (c *Cluster) ownerOf(id string) (process string, worker int, ok bool) {
	rest, ours := strings.CutPrefix(id, c.cfg.App+"-")
	at := strings.LastIndexByte(rest, '-')
	if !ours || at != len(c.cfg.ProcessID) {
		return "", 0, false
	}
	worker, err := strconv.Atoi(rest[at+1:])
	return rest[:at], worker, err == nil && worker >= 0
}

// processes returns the process ids of the group's members.
func (g *group) processes(own *lines) (map[string]bool, error) {
	coordinator, err := g.cluster.control.Coordinator(g.cluster.cfg.App)
	if err != nil {
		return nil, err
	}
	b, err := own.to(coordinator.Addr())
	if err != nil {
		return nil, err
	}
	resp, err := b.DescribeGroups(&sarama.DescribeGroupsRequest{Version: 4, Groups: []string{g.cluster.cfg.App}})
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{}
	for _, described := range resp.Groups {
		if err := code(described.Err); err != nil {
			return nil, err
		}
		for _, m := range described.Members {
			if m.GroupInstanceId != nil {
				alive[*m.GroupInstanceId] = true
			}
		}
	}
	return alive, nil
}

// take gets a new epoch of a transactional id, which makes the broker abort what is open under it.
func (c *Cluster) take(own *lines, id string) (err error) {
	for wait := firstPause; ; wait *= 2 {
		var coordinator *sarama.Broker
		if coordinator, err = c.control.TransactionCoordinator(id); err == nil {
			err = c.initProducer(own, coordinator.Addr(), id)
		}
		if err == nil || wait > lastPause || !pause(c.ctx, wait) {
			return err
		}
		if misplaced(err) {
			_ = c.control.RefreshTransactionCoordinator(id) // if it cannot be found, the next try says so
		}
	}
}

func (c *Cluster) initProducer(own *lines, addr, id string) error {
	b, err := own.to(addr)
	if err != nil {
		return err
	}
	resp, err := b.InitProducerID(&sarama.InitProducerIDRequest{
		Version: 4, TransactionalID: &id, TransactionTimeout: c.cfg.TransactionTimeout, ProducerID: -1, ProducerEpoch: -1,
	})
	if err != nil {
		own.drop(b)
		return err
	}
	return code(resp.Err)
}
