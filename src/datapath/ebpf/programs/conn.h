/* Who began a connection, and whether the connection is still open.
 *
 * A reply in a connection that the peer began passes without policy. Everything else that an endpoint sends is judged
 * each time, so an entry with BEGAN_ENDPOINT grants nothing. Such an entry prevents an inbound packet from making the
 * same tuple look begun by the peer, and lets livePeers report it.
 *
 * The next endpoint on an address has another generation, so no entry of the endpoint before is its own. TCP begins with a
 * SYN only. Of datagrams the tuple is remembered without its owner as well, because a peer that goes on sending would
 * otherwise begin the flow of the endpoint before anew.
 *
 * Established TCP is in ng_conn, which evicts nothing. Half-open TCP, UDP, SCTP and ICMP echo are in ng_conn_new, where an
 * endpoint's flows make room for its own (share.h). TCP is entered on SYN without ACK only. After both FINs a TCP entry
 * returns to ng_conn_new for the last acknowledgements. After an RST it does too, and returns to ng_conn when both sides
 * go on talking, because an RST can be forged. */
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

/* The tuple as the endpoint sees it; `outbound`: the endpoint sent the packet. */
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

/* Whether the packet belongs to a protocol whose connections are followed. */
static __always_inline int is_followed(const struct packet *p)
{
	if (p->later_fragment)
		return 0;
	return p->protocol == IPPROTO_TCP || p->protocol == IPPROTO_UDP || p->protocol == SCTP;
}

/* Whether what the endpoint sends is a reply in a connection that the peer began. */
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

/* Enters a flow in the share of `owner`. Nothing when it is there by now. */
static __noinline int conn_begin(const struct conn_key *k, const struct owner_key *owner, __u8 began, __u8 state)
{
	if (!k || !owner)
		return 0;
	struct flow_value fresh = { .owner = *owner };

	fresh.conn.seen = bpf_ktime_get_ns();
	fresh.conn.began = began;
	fresh.conn.state = state;
	int room = share_has_room(owner, TABLE_FLOWS);
	if ((!room || slots_have_holes(owner)) && !slot_pass(owner, room) && !room)
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

/* In the share of the endpoint that the key names. */
static __always_inline void conn_begin_own(const struct conn_key *k, __u8 began, __u8 state)
{
	struct owner_key owner = { .endpoint = k->endpoint, .generation = k->generation };

	conn_begin(k, &owner, began, state);
}

/* The same entry for a flow that begins. */
static __always_inline void conn_renew(struct conn_value *c, __u8 began, __u8 state)
{
	c->state = state;
	c->began = began;
	c->fin_local = c->fin_peer = c->after_local = c->after_peer = 0;
	c->seen = bpf_ktime_get_ns();
}

/* Takes a flow out of ng_conn_new. */
static __always_inline void conn_end(const struct conn_key *k)
{
	struct flow_value *f = bpf_map_lookup_elem(&ng_conn_new, k);

	if (!f)
		return;
	struct slot_key slot = { .owner = f->owner, .number = f->slot };
	if (bpf_map_delete_elem(&ng_conn_new, k) < 0)
		return;
	bpf_map_delete_elem(&ng_flow_slot, &slot);
	share_give(&slot.owner, TABLE_FLOWS);
}

/* Last seen, at most once a second, so that CPUs don't fight over the line. */
static __always_inline void conn_touch(struct conn_value *c)
{
	__u64 now = bpf_ktime_get_ns();

	if (now - c->seen > SECOND) {
		c->seen = now;
		c->used = 1;
	}
}

/* ng_conn_new -> ng_conn; 1 when it went. Over the endpoint's share, or the map's bound, it stays where it is and is
 * tried again a second later at the earliest. */
static __noinline int conn_promote(const struct conn_key *k, struct conn_value *c)
{
	if (!k || !c)
		return 0;
	struct owner_key owner = { .endpoint = k->endpoint, .generation = k->generation };
	struct conn_value fresh = { .seen = bpf_ktime_get_ns(), .began = c->began };

	if (!share_has_room(&owner, TABLE_CONNECTIONS)) {
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

/* ng_conn -> ng_conn_new, in the given state. Only the CPU whose delete found the entry counts it. */
static __noinline int conn_demote(const struct conn_key *k, __u8 began, __u8 state)
{
	if (!k)
		return 0;
	struct owner_key owner = { .endpoint = k->endpoint, .generation = k->generation };
	struct conn_value *c = bpf_map_lookup_elem(&ng_conn_new, k);

	if (c)
		conn_renew(c, began, state);
	else
		conn_begin(k, &owner, began, state);
	if (bpf_map_delete_elem(&ng_conn, k) == 0)
		share_give(&owner, TABLE_CONNECTIONS);
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

/* One TCP packet that passed, or that tears down a connection. */
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

/* The same tuple without its owner (endpoint 0), for as long as it is in use: a flow that an endpoint began is not
 * begun anew by the peer's next datagram, whoever has the address by then. */
static __noinline int note_tuple(const struct conn_key *k)
{
	if (!k)
		return 0;
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

/* Whether some endpoint began the tuple and it is still in use, by its peer alone if need be. */
static __noinline int is_tuple_known(const struct conn_key *k)
{
	if (!k)
		return 0;
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

/* Entries for a packet that passed (outbound) or came in. Echo is followed from the peer's request only. */
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
