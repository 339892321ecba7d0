/* This file makes whole IP packets, for answers from a source address that the kernel allows no UDP socket. The packets are UDP
 * over IPv4 (RFC 791) or IPv6 (RFC 8200), without options. In IPv4 the kernel fills in the total length, the identification and
 * the checksum. On a raw socket the kernel does not fragment, so this file fragments a packet that exceeds the MTU. */
#ifndef NAMEGATE_UDP_RAW_H
#define NAMEGATE_UDP_RAW_H

#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>

#include "udp-engine.h"

#define RAW_HEADERS_MAX (sizeof(struct ip6_hdr) + sizeof(struct udphdr))
#define HOPS 64

/* Adds octets to `sum` as a ones' complement sum in network order (RFC 1071). */
static uint32_t add_up(uint32_t sum, const uint8_t *octets, size_t length)
{
	for (size_t i = 0; i + 1 < length; i += 2)
		sum += (uint32_t)octets[i] << 8 | octets[i + 1];
	if (length & 1)
		sum += (uint32_t)octets[length - 1] << 8;
	return (sum & 0xffff) + (sum >> 16);
}

/* Writes the headers of a datagram with `length` octets of payload. Returns the size of the headers. */
static size_t raw_headers(uint8_t *into, uint8_t family, const uint8_t *source, uint16_t source_port, const uint8_t *peer,
			  uint16_t peer_port, uint32_t length)
{
	uint16_t udp_length = (uint16_t)(sizeof(struct udphdr) + length);
	size_t size = family == 4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);
	struct udphdr udp = { .source = htons(source_port), .dest = htons(peer_port), .len = htons(udp_length) };
	if (family == 4) {
		struct iphdr ip = { .version = 4, .ihl = 5, .ttl = HOPS, .protocol = IPPROTO_UDP };
		ip.tot_len = htons((uint16_t)(size + udp_length));
		memcpy(&ip.saddr, source, 4);
		memcpy(&ip.daddr, peer, 4);
		memcpy(into, &ip, size);
	} else {
		struct ip6_hdr ip = {};
		ip.ip6_flow = htonl(6u << 28);
		ip.ip6_plen = htons(udp_length);
		ip.ip6_nxt = IPPROTO_UDP;
		ip.ip6_hops = HOPS;
		memcpy(&ip.ip6_src, source, 16);
		memcpy(&ip.ip6_dst, peer, 16);
		memcpy(into, &ip, size);
	}
	memcpy(into + size, &udp, sizeof(udp));
	return size + sizeof(udp);
}

/* Fills in the UDP checksum of a whole packet (RFC 768, RFC 8200 8.1). */
static void raw_checksum(uint8_t *packet, uint8_t family, uint32_t length)
{
	size_t ip = family == 4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);
	size_t addresses = family == 4 ? offsetof(struct iphdr, saddr) : offsetof(struct ip6_hdr, ip6_src);
	uint32_t udp_length = (uint32_t)sizeof(struct udphdr) + length;
	uint32_t sum = add_up(udp_length + IPPROTO_UDP, packet + addresses, family == 4 ? 8 : 32);
	sum = add_up(sum, packet + ip, udp_length);
	uint16_t check = (uint16_t)~((sum & 0xffff) + (sum >> 16));
	check = htons(check ? check : 0xffff);
	memcpy(packet + ip + offsetof(struct udphdr, check), &check, 2);
}

static int send_packet(struct udp_socket *socket, const struct msghdr *like, uint8_t *packet, size_t length)
{
	struct iovec iovec = { packet, length };
	struct msghdr header = *like;
	header.msg_iov = &iovec;
	return sendmsg(socket->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* Sends a packet as fragments of at most `mtu` octets. Returns 0 or an errno: EMSGSIZE if the fragments are still too long. */
static int send_fragments_of(struct engine *engine, struct udp_socket *socket, const struct msghdr *header, size_t mtu)
{
	uint8_t packet[2048];
	const uint8_t *whole = header->msg_iov->iov_base;
	size_t ip = socket->family == 4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);
	size_t front = socket->family == 4 ? ip : ip + sizeof(struct ip6_frag);
	size_t left = header->msg_iov->iov_len - ip;
	size_t most = (mtu - front) & ~(size_t)7;
	uint32_t id = ++engine->fragment_id;
	memcpy(packet, whole, ip);
	for (size_t at = 0; left > 0;) {
		size_t size = left < most ? left : most;
		bool more = left > size;
		if (socket->family == 4) {
			struct iphdr *header4 = (struct iphdr *)packet;
			/* The kernel would replace 0 by another number in each fragment. */
			header4->id = htons((uint16_t)(id % 65535 + 1));
			header4->frag_off = htons((uint16_t)(at / 8 | (more ? IP_MF : 0)));
			header4->tot_len = htons((uint16_t)(front + size));
		} else {
			struct ip6_hdr *header6 = (struct ip6_hdr *)packet;
			struct ip6_frag fragment = { .ip6f_nxt = IPPROTO_UDP, .ip6f_ident = htonl(id) };
			fragment.ip6f_offlg = htons((uint16_t)(at | (more ? 1 : 0)));
			header6->ip6_nxt = IPPROTO_FRAGMENT;
			header6->ip6_plen = htons((uint16_t)(sizeof(fragment) + size));
			memcpy(packet + ip, &fragment, sizeof(fragment));
		}
		memcpy(packet + front, whole + ip + at, size);
		int error = send_packet(socket, header, packet, front + size);
		if (error)
			return error;
		at += size;
		left -= size;
	}
	return 0;
}

/* Sends a packet that exceeds the MTU as fragments: first for Ethernet, then for the smallest MTU of each family. */
static int send_fragments(struct engine *engine, struct udp_socket *socket, const struct msghdr *header)
{
	static const size_t sizes[] = { 1500, 1280, 576 };
	for (int i = 0; i < (socket->family == 4 ? 3 : 2); i++) {
		int error = send_fragments_of(engine, socket, header, sizes[i]);
		if (error != EMSGSIZE)
			return error;
	}
	return EMSGSIZE;
}

#endif
