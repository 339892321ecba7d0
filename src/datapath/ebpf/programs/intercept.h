/* DNS on its way to the rules that redirect it. tc at the host side of a veth runs before nftables, so the packets to be
 * redirected must pass here first. They may pass only while the rules are in force, or they would reach any resolver.
 * `intercept up` writes the entry after the rules are in; `down` removes the entry before the rules go.
 *
 *  - A packet that some readers do not take for DNS is judged by policy, because the rules may not see DNS in it. So is a
 *    packet to a group, which a multicast router may send on.
 *  - A packet that goes out by the interface, as an endpoint inside sends it, meets no rule: the rules redirect what comes in.
 *  - On a bridge port only frames for the bridge itself meet the rules. Others stay on the bridge.
 *  - A tagged frame goes to another interface than the one that the rules name.
 *  - A later fragment has no port.
 * These packets are not followed, because an entry for each query would push others out of ng_conn_new. So an answer from
 * port 53 begins no connection either, also for a while after the rules went: an answer that was under way would open its
 * tuple to an endpoint that kept its socket. */
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

/* Whether a frame stays on the bridge that it came in by. */
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

/* Whether what came in from an endpoint goes to who redirects DNS. */
static __always_inline int is_intercepted(struct __sk_buff *skb, const struct packet *p)
{
	if (!is_dns(p, p->target_port) || p->adorned || p->tagged || is_group(p) || skb->ingress_ifindex != skb->ifindex)
		return 0;
	struct intercepted_value *i = interception_of(skb);
	return i && (i->families & family_bit(p)) && !is_bridged(skb, i);
}

/* Whether what an endpoint sends to an address and port of a listener gets there. */
static __always_inline int reaches_listener(struct __sk_buff *skb, const struct packet *p)
{
	if (p->adorned)
		return 0;
	struct intercepted_value *i = interception_of(skb);
	return !i || !is_bridged(skb, i);
}

/* Whether what goes to an endpoint is an answer that begins nothing. */
static __always_inline int is_quiet(struct __sk_buff *skb, const struct packet *p)
{
	if (!is_dns(p, p->source_port))
		return 0;
	struct intercepted_value *i = interception_of(skb);
	return i && (i->quiet & family_bit(p)) && bpf_ktime_get_ns() < i->quiet_until;
}

#endif
