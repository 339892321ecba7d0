/* This file lets DNS pass to the rules that redirect it. At the host side of a veth, tc runs before nftables, so the programs
 * must let such packets pass first. They may do so only while the rules are in force, because otherwise the packets would reach
 * any resolver. `intercept up` writes the entry in ng_intercepted after it installs the rules, and `intercept down` removes the
 * entry before it removes the rules.
 *
 * Policy judges these packets as usual:
 * - A packet that some readers do not recognize as DNS, because the rules may not see DNS in it.
 * - A packet to a group, because a multicast router may forward it.
 * - A packet that leaves by the interface, as an endpoint inside sends it. It meets no rule, because the rules redirect what
 *   arrives.
 * - On a bridge port, a frame that is not for the bridge itself. It stays on the bridge and meets no rule.
 * - A tagged frame, because it belongs to another interface than the one that the rules name.
 * - A later fragment, because it has no port.
 *
 * The programs do not follow intercepted queries, because an entry for each query would push other entries out of ng_conn_new. So
 * an answer from port 53 must not begin a connection either. This holds for some time after the rules were removed. Otherwise a
 * late answer would open its tuple to an endpoint that kept its socket. */
#ifndef NAMEGATE_INTERCEPT_H
#define NAMEGATE_INTERCEPT_H

#include <linux/bpf.h>
#include <linux/in.h>

#include "maps.h"
#include "packet.h"

#define DNS_PORT 53

static __always_inline int is_dns(const struct packet *p, __be16 port)
{
	return port == bpf_htons(DNS_PORT) && !p->later_fragment &&
	       (p->protocol == IPPROTO_UDP || p->protocol == IPPROTO_TCP);
}

static __always_inline int is_group(const struct packet *p)
{
	return bpf_ntohl(p->target[0]) >> 24 >= (p->family == 4 ? 224 : 255);
}

static __always_inline __u8 family_bit(const struct packet *p)
{
	return p->family == 4 ? INTERCEPTED4 : INTERCEPTED6;
}

static __always_inline struct intercepted_value *interception_of(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;

	return bpf_map_lookup_elem(&ng_intercepted, &ifindex);
}

/* True if a frame stays on the bridge at which it arrived. */
static __always_inline int is_bridged(struct __sk_buff *skb, const struct intercepted_value *i)
{
	__u8 mac[6];

	if (!i->bridge_port)
		return 0;
	if (bpf_skb_load_bytes(skb, 0, mac, sizeof(mac)) < 0)
		return 1;
	for (int n = 0; n < 6; n++)
		if (mac[n] != i->mac[n])
			return 1;
	return 0;
}

/* True if a packet from an endpoint goes to the rules that redirect DNS. */
static __always_inline int is_intercepted(struct __sk_buff *skb, const struct packet *p)
{
	if (!is_dns(p, p->target_port) || p->adorned || p->tagged || is_group(p) || skb->ingress_ifindex != skb->ifindex)
		return 0;
	struct intercepted_value *i = interception_of(skb);
	return i && (i->families & family_bit(p)) && !is_bridged(skb, i);
}

/* True if a packet to the address and port of a listener can reach that listener. */
static __always_inline int reaches_listener(struct __sk_buff *skb, const struct packet *p)
{
	if (p->adorned)
		return 0;
	struct intercepted_value *i = interception_of(skb);
	return !i || !is_bridged(skb, i);
}

/* True if a packet to an endpoint is an answer that begins no connection. */
static __always_inline int is_quiet(struct __sk_buff *skb, const struct packet *p)
{
	if (!is_dns(p, p->source_port))
		return 0;
	struct intercepted_value *i = interception_of(skb);
	return i && (i->quiet & family_bit(p)) && bpf_ktime_get_ns() < i->quiet_until;
}

#endif
