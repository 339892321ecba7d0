/* This file reads one packet into `struct packet`. bpf_skb_load_bytes copies everything, so paged and linear packets need no
 * separate code. These packets are refused as malformed:
 * - Lengths or versions contradict each other, or a header ends behind the packet.
 * - The first fragment does not contain the whole transport header, or a TCP fragment has offset 1 (RFC 3128).
 * - The packet has IPv4 options other than padding and router alert, or an IPv6 routing header. With a source route, the packet
 *   does not go to the address that policy judges.
 * - The packet has more than MAX_EXTENSIONS IPv6 extension headers, or more than two VLAN tags.
 *
 * Four extension headers are skipped, as the kernel's own rules skip them (ipv6_find_hdr as nftables calls it): hop-by-hop,
 * routing, fragment and destination options. Any other extension header is taken as the protocol and has no ports. Inner packets
 * of tunnels are not read, so policy judges the outer protocol. */
#ifndef NAMEGATE_PACKET_H
#define NAMEGATE_PACKET_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "forget.h"

#define MAX_EXTENSIONS 8
#define MAX_OPTION_WORDS 10
#define SCTP 132

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

#define ECHO_REPLY4 0
#define ECHO_REQUEST4 8
#define ECHO_REQUEST6 128
#define ECHO_REPLY6 129

#define READ_OK 0
#define READ_MALFORMED 1
#define READ_ARP 2

struct packet {
	__u32 family;
	__u32 transport; /* offset of the transport header */
	__u32 end;       /* offset of the end of the IP packet */
	__u8 protocol;
	__u8 later_fragment; /* not the first fragment, so it has no ports */
	__u8 adorned;        /* has IPv4 options, IPv6 extension headers or more fragments, so readers may find different ports */
	__u8 hop_limit;
	__u8 tcp_flags;
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 tagged; /* has a VLAN tag */
	__be16 source_port; /* for an ICMP echo, both ports are its identifier */
	__be16 target_port;
	__u32 source[4];
	__u32 target[4];
};

static __always_inline int read_transport(struct __sk_buff *skb, struct packet *p)
{
	__u8 head[14] = {};
	__u32 room = p->end - p->transport;
	__u32 need;

	switch (p->protocol) {
	case IPPROTO_TCP:
		need = 20;
		break;
	case SCTP:
		need = 12;
		break;
	case IPPROTO_UDP:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		need = 8;
		break;
	default:
		return READ_OK;
	}
	if (room < need)
		return READ_MALFORMED;
	if (p->protocol == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, p->transport, head, 14) < 0 || head[12] >> 4 < 5)
			return READ_MALFORMED;
		p->tcp_flags = head[13];
	} else if (bpf_skb_load_bytes(skb, p->transport, head, 8) < 0) {
		return READ_MALFORMED;
	}
	if (p->protocol == IPPROTO_ICMP || p->protocol == IPPROTO_ICMPV6) {
		p->icmp_type = head[0];
		p->icmp_code = head[1];
		__builtin_memcpy(&p->source_port, head + 4, 2);
		p->target_port = p->source_port;
	} else {
		__builtin_memcpy(&p->source_port, head, 2);
		__builtin_memcpy(&p->target_port, head + 2, 2);
	}
	return READ_OK;
}

/* Allows only two IPv4 options: padding, and router alert (RFC 2113; IGMP needs it). */
static __always_inline int check_options(struct __sk_buff *skb, __u32 at, __u32 words)
{
	for (__u32 i = 0; i < MAX_OPTION_WORDS; i++) {
		__be32 word = 0; /* octets 0 and 1 are padding */
		if (i >= words)
			return READ_OK;
		if (bpf_skb_load_bytes(skb, at + i * 4, &word, 4) < 0)
			return READ_MALFORMED;
		if ((word & 0xfefefefe) != 0 && word != bpf_htonl(0x94040000))
			return READ_MALFORMED;
	}
	return READ_OK;
}

static __always_inline int read_ipv4(struct __sk_buff *skb, __u32 at, struct packet *p)
{
	struct iphdr h;
	__u32 there = skb->len - at;

	if (bpf_skb_load_bytes(skb, at, &h, sizeof(h)) < 0)
		return READ_MALFORMED;
	__u32 head = h.ihl * 4, total = bpf_ntohs(h.tot_len);
	if (total == 0 && there > 65535)
		total = there; /* segmentation offload of more than 64 KiB */
	if (h.version != 4 || head < 20 || total < head || total > there)
		return READ_MALFORMED;
	if (head > 20 && check_options(skb, at + 20, h.ihl - 5) != READ_OK)
		return READ_MALFORMED;
	p->family = 4;
	p->protocol = h.protocol;
	p->hop_limit = h.ttl;
	p->source[0] = h.saddr;
	p->target[0] = h.daddr;
	p->transport = at + head;
	p->end = at + total;
	p->adorned = head > 20 || (h.frag_off & bpf_htons(0x3fff));
	__u32 offset = bpf_ntohs(h.frag_off) & 0x1fff;
	if (offset != 0) {
		p->later_fragment = 1;
		return offset == 1 && h.protocol == IPPROTO_TCP ? READ_MALFORMED : READ_OK;
	}
	return READ_OK;
}

static __always_inline int is_extension(__u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_FRAGMENT ||
	       next == IPPROTO_DSTOPTS;
}

/* Walks the extension headers. `p->protocol` is the type of the next header, and `p->transport` is its offset. The loop is
 * unrolled, because kernels before 6.8 refuse it: its last instruction is no jump. */
static __always_inline int read_extensions(struct __sk_buff *skb, struct packet *p)
{
#pragma unroll
	for (int i = 0; i <= MAX_EXTENSIONS; i++) {
		__u8 head[8] = {};
		if (!is_extension(p->protocol))
			return READ_OK;
		if (i == MAX_EXTENSIONS || p->transport + 8 > p->end)
			return READ_MALFORMED;
		if (bpf_skb_load_bytes(skb, p->transport, head, 8) < 0)
			return READ_MALFORMED;
		p->adorned = 1;
		if (p->protocol == IPPROTO_FRAGMENT) {
			__u32 offset = (head[2] << 8 | head[3]) >> 3;
			p->protocol = head[0];
			p->transport += 8;
			if (offset != 0) {
				p->later_fragment = 1;
				return offset == 1 && head[0] == IPPROTO_TCP ? READ_MALFORMED : READ_OK;
			}
			continue;
		}
		if (p->protocol == IPPROTO_ROUTING)
			return READ_MALFORMED;
		p->protocol = head[0];
		p->transport += (head[1] + 1) * 8;
		if (p->transport > p->end)
			return READ_MALFORMED;
	}
	return READ_MALFORMED;
}

static __always_inline int read_ipv6(struct __sk_buff *skb, __u32 at, struct packet *p)
{
	struct ipv6hdr h;
	__u32 there = skb->len - at;

	if (bpf_skb_load_bytes(skb, at, &h, sizeof(h)) < 0 || h.version != 6)
		return READ_MALFORMED;
	__u32 total = sizeof(h) + bpf_ntohs(h.payload_len);
	if (h.payload_len == 0 && there > 65535)
		total = there; /* segmentation offload of more than 64 KiB */
	if (total > there)
		return READ_MALFORMED;
	p->family = 6;
	p->protocol = h.nexthdr;
	p->hop_limit = h.hop_limit;
	__builtin_memcpy(p->source, &h.saddr, 16);
	__builtin_memcpy(p->target, &h.daddr, 16);
	p->transport = at + sizeof(h);
	p->end = at + total;
	return read_extensions(skb, p);
}

/* Call this after a packet was read, once in each program (forget.h). */
static __always_inline void forget_fields(struct __sk_buff *skb, struct packet *p)
{
	__u32 noise = skb->len;

	forget(p->protocol, noise);
	forget(p->later_fragment, noise);
	forget(p->adorned, noise);
	forget(p->tcp_flags, noise);
	forget(p->icmp_type, noise);
	forget(p->source_port, noise);
	forget(p->target_port, noise);
}

/* Reads the IP packet at an offset. */
static __always_inline int read_ip(struct __sk_buff *skb, __u32 at, int version, struct packet *p)
{
	int result = version == 6 ? read_ipv6(skb, at, p) : read_ipv4(skb, at, p);

	if (result != READ_OK)
		return result;
	if (!p->later_fragment && read_transport(skb, p) != READ_OK)
		return READ_MALFORMED;
	return READ_OK;
}

/* Returns the version nibble of a packet without a link header, or 0 if the packet is empty. */
static __always_inline int version_of(struct __sk_buff *skb)
{
	__u8 first = 0;

	return bpf_skb_load_bytes(skb, 0, &first, 1) < 0 ? 0 : first >> 4;
}

/* Reads a packet without a link header. The version nibble tells IPv4 from IPv6. */
static __always_inline int read_network(struct __sk_buff *skb, struct packet *p)
{
	return read_ip(skb, 0, version_of(skb), p);
}

/* Reads the link header from the frame itself, because skb->protocol is what the sender of a raw frame claimed. Refuses
 * everything except IP and ARP, because PPPoE, MPLS and other protocols can carry IP. `at` receives the offset of the IP packet. */
static __always_inline int read_link(struct __sk_buff *skb, struct packet *p, __u32 *at, int *version)
{
	__be16 type = 0;

	*at = 14;
	if (bpf_skb_load_bytes(skb, *at - 2, &type, 2) < 0)
		return READ_MALFORMED;
	p->tagged = skb->vlan_present != 0;
	for (int i = 0; i < 2; i++) {
		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		*at += 4;
		p->tagged = 1;
		if (bpf_skb_load_bytes(skb, *at - 2, &type, 2) < 0)
			return READ_MALFORMED;
	}
	if (type == bpf_htons(ETH_P_ARP))
		return READ_ARP;
	*version = type == bpf_htons(ETH_P_IPV6) ? 6 : 4;
	return *version == 6 || type == bpf_htons(ETH_P_IP) ? READ_OK : READ_MALFORMED;
}

static __always_inline int read_frame(struct __sk_buff *skb, int layer3, struct packet *p)
{
	__u32 at = 0;
	int version = 0, read = READ_OK;

	if (layer3)
		version = version_of(skb);
	else
		read = read_link(skb, p, &at, &version);
	if (read != READ_OK)
		return read;
	forget(at, skb->len);
	return read_ip(skb, at, version, p);
}

#endif
