/* This file admits neighbour discovery and multicast listener reports. An endpoint needs them without policy, and without an
 * address of its own (duplicate address detection has none). They must not become a tunnel, so only packets pass that cannot
 * leave the link. A packet with hop limit 255 to ff02::/16 or fe80::/10 cannot leave the link. A packet to another unicast
 * address passes only if that address is known to be on the link. It is known if a packet with hop limit 255 arrived from it. An
 * endpoint's router advertisements and redirects are judged like any other ICMPv6. */
#ifndef NAMEGATE_NEIGHBOUR_H
#define NAMEGATE_NEIGHBOUR_H

#include "conn.h"

#define ND_ROUTER_SOLICIT 133
#define ND_ROUTER_ADVERT 134
#define ND_SOLICIT 135
#define ND_ADVERT 136
#define MLD_REPORT 131
#define MLD_DONE 132
#define MLD2_REPORT 143

static __always_inline int is_link_multicast(const __u32 *a)
{
	return (a[0] & bpf_htonl(0xffff0000)) == bpf_htonl(0xff020000);
}

static __always_inline int is_link_local(const __u32 *a)
{
	return (a[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000);
}

static __always_inline int is_unspecified(const __u32 *a)
{
	return !(a[0] | a[1] | a[2] | a[3]);
}

static __always_inline int is_discovery(const struct packet *p)
{
	return p->family == 6 && p->protocol == IPPROTO_ICMPV6 && !p->later_fragment && !p->adorned &&
	       p->hop_limit == 255 && p->icmp_code == 0;
}

static __always_inline void neighbour_key(const struct endpoint_value *e, const __u32 *address,
					  struct conn_key *k)
{
	__builtin_memset(k, 0, sizeof(*k));
	k->endpoint = e->id;
	k->generation = e->generation;
	k->protocol = IPPROTO_ICMPV6;
	k->family = 6;
	k->peer_port = NEIGHBOUR_PORT;
	__builtin_memcpy(k->peer, address, 16);
}

/* True if a packet of the endpoint is link housekeeping, which passes without policy. */
static __always_inline int is_housekeeping(const struct endpoint_value *e, const struct packet *p,
					   struct conn_key *scratch)
{
	if (p->family != 6 || p->protocol != IPPROTO_ICMPV6 || p->later_fragment)
		return 0;
	if (p->icmp_type == MLD_REPORT || p->icmp_type == MLD_DONE || p->icmp_type == MLD2_REPORT)
		return p->hop_limit == 1 && is_link_multicast(p->target) &&
		       (is_link_local(p->source) || is_unspecified(p->source));
	if (!is_discovery(p) || (p->icmp_type != ND_ROUTER_SOLICIT && p->icmp_type != ND_SOLICIT &&
				 p->icmp_type != ND_ADVERT))
		return 0;
	if (is_link_multicast(p->target) || is_link_local(p->target))
		return 1;
	neighbour_key(e, p->target, scratch);
	struct conn_value *known = bpf_map_lookup_elem(&ng_conn_new, scratch);
	return known && known->began == BEGAN_NEIGHBOUR && bpf_ktime_get_ns() - known->seen < NEIGHBOUR_TIME;
}

static __always_inline void learn_neighbour(const struct endpoint_value *e, const __u32 *address,
					    struct conn_key *scratch)
{
	if (is_link_local(address) || is_unspecified(address))
		return;
	neighbour_key(e, address, scratch);
	struct conn_value *known = bpf_map_lookup_elem(&ng_conn_new, scratch);
	if (known)
		conn_touch(known);
	else
		conn_begin_own(scratch, BEGAN_NEIGHBOUR, STATE_NEW);
}

/* Remembers the hosts on the link, from discovery packets that arrived with hop limit 255. */
static __always_inline void learn_neighbours(struct __sk_buff *skb, const struct endpoint_value *e,
					     const struct packet *p, struct conn_key *scratch)
{
	__u32 target[4];

	if (!is_discovery(p) || p->icmp_type < ND_ROUTER_ADVERT || p->icmp_type > ND_ADVERT)
		return;
	learn_neighbour(e, p->source, scratch);
	if (p->icmp_type == ND_ADVERT && p->transport + 24 <= p->end &&
	    bpf_skb_load_bytes(skb, p->transport + 8, target, 16) == 0)
		learn_neighbour(e, target, scratch);
}

#endif
