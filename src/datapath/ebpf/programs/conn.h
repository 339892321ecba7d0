/* This file records who began a connection, and whether the connection is still open.
 *
 * Policy does not judge a reply in a connection that the peer began. Policy judges every other packet of an endpoint, so an entry
 * with BEGAN_ENDPOINT allows no packet. Such an entry has two purposes. An inbound packet cannot make the same tuple look as if
 * the peer began it. And livePeers can report the connection.
 *
 * An entry carries the endpoint's generation. So the next endpoint on an address does not inherit the entries of the endpoint
 * before it. A TCP entry begins only with a SYN without ACK. For datagrams, ng_conn_new also remembers the tuple without its
 * owner. Otherwise, if the peer of an earlier endpoint continued to send, its next datagram would look as if the peer began a
 * connection to the new endpoint.
 *
 * ng_conn has established TCP and evicts nothing. ng_conn_new has half-open TCP, UDP, SCTP and ICMP echo. In ng_conn_new an
 * endpoint's old entries make room for its own new entries (share.h). After both FINs, or after an RST, a TCP entry returns to
 * ng_conn_new for the last packets. An RST can be forged. So if both sides send again after an RST, the entry returns to ng_conn. */
#ifndef NAMEGATE_CONN_H
#define NAMEGATE_CONN_H

#include <linux/errno.h>

#include "maps.h"
#include "packet.h"
#include "share.h"

#define REPLY_IDLE (180 * SECOND)
#define CLOSING_TIME (60 * SECOND)
#define NEIGHBOUR_TIME (3600 * SECOND)
#define NEIGHBOUR_PORT 0xffff

/* Makes the key from the tuple as the endpoint sees it. `outbound` is set if the endpoint sent the packet. */
static __always_inline void conn_key_of(const struct endpoint_value *e, const struct packet *p, int outbound,
					struct conn_key *k)
{
	k->endpoint = e->id;
	k->generation = e->generation;
	k->protocol = p->protocol;
	k->family = p->family;
	k->local_port = outbound ? p->source_port : p->target_port;
	k->peer_port = outbound ? p->target_port : p->source_port;
	k->unused = 0;
	__builtin_memcpy(k->local, outbound ? p->source : p->target, 16);
	__builtin_memcpy(k->peer, outbound ? p->target : p->source, 16);
}

static __always_inline int is_opening(const struct packet *p)
{
	return (p->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_SYN;
}

static __always_inline int is_echo(const struct packet *p, int reply)
{
	if (p->family == 4)
		return p->protocol == IPPROTO_ICMP && p->icmp_type == (reply ? ECHO_REPLY4 : ECHO_REQUEST4);
	return p->protocol == IPPROTO_ICMPV6 && p->icmp_type == (reply ? ECHO_REPLY6 : ECHO_REQUEST6);
}

/* True if the programs follow connections of this packet's protocol. */
static __always_inline int is_followed(const struct packet *p)
{
	if (p->later_fragment)
		return 0;
	return p->protocol == IPPROTO_TCP || p->protocol == IPPROTO_UDP || p->protocol == SCTP;
}

/* True if a packet of the endpoint is a reply in a connection that the peer began. */
static __always_inline int is_reply(const struct packet *p, const struct conn_key *k)
{
	struct conn_value *c;

	if (p->protocol == IPPROTO_TCP && is_opening(p))
		return 0;
	if (!is_followed(p) && (p->later_fragment || !is_echo(p, 1)))
		return 0;
	if (p->protocol == IPPROTO_TCP) {
		c = bpf_map_lookup_elem(&ng_conn, k);
		if (c)
			return c->began == BEGAN_PEER;
	}
	c = bpf_map_lookup_elem(&ng_conn_new, k);
	if (!c || c->began != BEGAN_PEER)
		return 0;
	__u64 limit = c->state == STATE_CLOSING || c->state == STATE_RESET ? CLOSING_TIME : REPLY_IDLE;
	return bpf_ktime_get_ns() - c->seen < limit;
}

/* Enters a connection into ng_conn_new, in the share of `owner`. Does nothing if the entry exists. */
static __noinline int conn_begin(const struct conn_key *k, const struct owner_key *owner, __u8 began, __u8 state)
{
	struct flow_value fresh = { .owner = *owner };

	fresh.conn.seen = bpf_ktime_get_ns();
	fresh.conn.began = began;
	fresh.conn.state = state;
	int room = share_has_room(owner->endpoint, owner->generation, TABLE_FLOWS);
	if ((!room || slots_have_holes(owner->endpoint, owner->generation)) &&
	    !slot_pass(owner->endpoint, owner->generation, room) && !room)
		return 0;
	__s64 number = slot_take(owner, k);
	if (number < 0) {
		count(STAT_FLOW_FULL);
		return 0;
	}
	fresh.slot = number;
	long result = bpf_map_update_elem(&ng_conn_new, k, &fresh, BPF_NOEXIST);
	if (result == 0) {
		share_take(owner, TABLE_FLOWS);
		return 1;
	}
	struct slot_key slot = { .owner = *owner, .number = number };
	bpf_map_delete_elem(&ng_flow_slot, &slot);
	if (result != -EEXIST)
		count(STAT_FLOW_FULL);
	return 0;
}

/* Enters a connection in the share of the endpoint that the key names. */
static __always_inline void conn_begin_own(const struct conn_key *k, __u8 began, __u8 state)
{
	struct owner_key owner = { .endpoint = k->endpoint, .generation = k->generation };

	conn_begin(k, &owner, began, state);
}

/* Uses the entry of an earlier connection for a new connection with the same tuple. */
static __always_inline void conn_renew(struct conn_value *c, __u8 began, __u8 state)
{
	c->state = state;
	c->began = began;
	c->fin_local = c->fin_peer = c->after_local = c->after_peer = 0;
	c->seen = bpf_ktime_get_ns();
}

/* Removes a connection from ng_conn_new. */
static __always_inline void conn_end(const struct conn_key *k)
{
	struct flow_value *f = bpf_map_lookup_elem(&ng_conn_new, k);

	if (!f)
		return;
	struct slot_key slot = { .owner = f->owner, .number = f->slot };
	if (bpf_map_delete_elem(&ng_conn_new, k) < 0)
		return;
	bpf_map_delete_elem(&ng_flow_slot, &slot);
	share_give(slot.owner.endpoint, slot.owner.generation, TABLE_FLOWS);
}

/* Updates the time of the last packet, at most once a second, so that CPUs do not compete for the cache line. */
static __always_inline void conn_touch(struct conn_value *c)
{
	__u64 now = bpf_ktime_get_ns();

	if (now - c->seen > SECOND) {
		c->seen = now;
		c->used = 1;
	}
}

/* Moves a connection from ng_conn_new to ng_conn. Returns 1 if it moved. If the endpoint's share or the map is full, the
 * connection stays where it is, and a packet at least one second later tries again. */
static __noinline int conn_promote(const struct conn_key *k, struct conn_value *c)
{
	struct owner_key owner = { .endpoint = k->endpoint, .generation = k->generation };
	struct conn_value fresh = { .seen = bpf_ktime_get_ns(), .began = c->began };

	if (!share_has_room(owner.endpoint, owner.generation, TABLE_CONNECTIONS)) {
		count(STAT_CONN_LIMIT);
		c->state = STATE_OPEN;
		return 0;
	}
	if (bpf_map_update_elem(&ng_conn, k, &fresh, BPF_NOEXIST) < 0) {
		count(STAT_CONN_FULL);
		c->state = STATE_OPEN;
		return 0;
	}
	share_take(&owner, TABLE_CONNECTIONS);
	conn_end(k);
	return 1;
}

/* Moves a connection from ng_conn to ng_conn_new, in the given state. Two CPUs can race here, so only the CPU whose delete found
 * the entry counts it. */
static __noinline int conn_demote(const struct conn_key *k, __u8 began, __u8 state)
{
	struct owner_key owner = { .endpoint = k->endpoint, .generation = k->generation };
	struct conn_value *c = bpf_map_lookup_elem(&ng_conn_new, k);

	if (c)
		conn_renew(c, began, state);
	else
		conn_begin(k, &owner, began, state);
	if (bpf_map_delete_elem(&ng_conn, k) == 0)
		share_give(owner.endpoint, owner.generation, TABLE_CONNECTIONS);
	return 0;
}

static __always_inline void note_fin(struct conn_value *c, int outbound)
{
	if (outbound)
		c->fin_local = 1;
	else
		c->fin_peer = 1;
}

static __always_inline void follow_established(const struct packet *p, const struct conn_key *k, int outbound,
					       struct conn_value *c)
{
	if (is_opening(p)) {
		if (outbound && c->began == BEGAN_PEER)
			conn_demote(k, BEGAN_ENDPOINT, STATE_NEW);
		return;
	}
	conn_touch(c);
	if (p->tcp_flags & TCP_RST) {
		conn_demote(k, c->began, STATE_RESET);
	} else if (p->tcp_flags & TCP_FIN) {
		note_fin(c, outbound);
		if (c->fin_local && c->fin_peer)
			conn_demote(k, c->began, STATE_CLOSING);
	}
}

static __always_inline void follow_unsettled(const struct packet *p, const struct conn_key *k, int outbound,
					     struct conn_value *c)
{
	int initiator = outbound == (c->began == BEGAN_ENDPOINT);

	switch (c->state) {
	case STATE_NEW:
		if (!initiator && (p->tcp_flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK))
			c->state = STATE_ANSWERED;
		break;
	case STATE_ANSWERED:
		if (initiator && (p->tcp_flags & TCP_ACK) && !(p->tcp_flags & (TCP_SYN | TCP_RST))) {
			conn_promote(k, c);
			if (p->tcp_flags & TCP_FIN) {
				struct conn_value *settled = bpf_map_lookup_elem(&ng_conn, k);
				if (settled)
					note_fin(settled, outbound);
			}
			return;
		}
		break;
	case STATE_OPEN:
		if (p->tcp_flags & (TCP_SYN | TCP_RST | TCP_FIN))
			break;
		if (bpf_ktime_get_ns() - c->seen > SECOND && conn_promote(k, c))
			return;
		break;
	case STATE_RESET:
		if (p->tcp_flags & (TCP_RST | TCP_SYN))
			return;
		if (outbound)
			c->after_local = 1;
		else
			c->after_peer = 1;
		if (c->after_local && c->after_peer)
			conn_promote(k, c);
		return;
	case STATE_CLOSING:
		return;
	}
	conn_touch(c);
	if (p->tcp_flags & TCP_RST) {
		c->state = STATE_CLOSING;
	} else if (p->tcp_flags & TCP_FIN) {
		note_fin(c, outbound);
		if (c->fin_local && c->fin_peer)
			c->state = STATE_CLOSING;
	}
}

/* Follows one TCP packet that was admitted, or that ends a connection. */
static __always_inline void follow_tcp(const struct packet *p, const struct conn_key *k, int outbound)
{
	struct conn_value *c = bpf_map_lookup_elem(&ng_conn, k);

	if (c) {
		follow_established(p, k, outbound, c);
		return;
	}
	c = bpf_map_lookup_elem(&ng_conn_new, k);
	if (!is_opening(p)) {
		if (c)
			follow_unsettled(p, k, outbound, c);
	} else if (!c) {
		conn_begin_own(k, outbound ? BEGAN_ENDPOINT : BEGAN_PEER, STATE_NEW);
	} else if (outbound) {
		if (c->began == BEGAN_PEER || c->state != STATE_NEW)
			conn_renew(c, BEGAN_ENDPOINT, STATE_NEW);
	} else if (c->began == BEGAN_PEER && c->state != STATE_NEW) {
		conn_renew(c, BEGAN_PEER, STATE_NEW);
	}
}

/* Remembers the tuple without its owner (endpoint 0) for as long as it is in use. If an endpoint began the connection, the peer's
 * next datagram then does not begin it again, whichever endpoint has the address at that time. */
static __noinline int note_tuple(const struct conn_key *k)
{
	struct owner_key owner = { .endpoint = k->endpoint, .generation = k->generation };
	struct conn_key tuple = *k;
	tuple.endpoint = tuple.generation = 0;
	struct conn_value *c = bpf_map_lookup_elem(&ng_conn_new, &tuple);
	if (c)
		conn_touch(c);
	else
		conn_begin(&tuple, &owner, BEGAN_ENDPOINT, STATE_NEW);
	return 0;
}

/* True if some endpoint began the tuple and packets still use it, even if only the peer sends. */
static __noinline int is_tuple_known(const struct conn_key *k)
{
	struct conn_key tuple = *k;
	tuple.endpoint = tuple.generation = 0;
	struct conn_value *c = bpf_map_lookup_elem(&ng_conn_new, &tuple);
	if (!c || bpf_ktime_get_ns() - c->seen >= REPLY_IDLE)
		return 0;
	conn_touch(c);
	return 1;
}

static __always_inline void follow_datagram(const struct conn_key *k, int outbound)
{
	struct conn_value *c = bpf_map_lookup_elem(&ng_conn_new, k);

	if (c) {
		int noted = c->began != BEGAN_ENDPOINT || bpf_ktime_get_ns() - c->seen <= SECOND;
		conn_touch(c);
		if (!noted)
			note_tuple(k);
	} else if (outbound) {
		conn_begin_own(k, BEGAN_ENDPOINT, STATE_NEW);
		note_tuple(k);
	} else if (!is_tuple_known(k)) {
		conn_begin_own(k, BEGAN_PEER, STATE_NEW);
	}
}

/* Records a packet that was admitted (outbound) or received. An ICMP echo is recorded only if the peer sent the request. */
static __always_inline void follow(const struct packet *p, const struct conn_key *k, int outbound)
{
	if (p->later_fragment)
		return;
	if (p->protocol == IPPROTO_TCP)
		follow_tcp(p, k, outbound);
	else if (is_followed(p) || (!outbound && is_echo(p, 0)))
		follow_datagram(k, outbound);
}

#endif
