/* This file accepts connections. For each connection it reports the client's address, the server address that the client asked
 * for, and the interface. When descriptors or memory run short, it parks the listener. */
#ifndef NAMEGATE_TCP_ACCEPT_H
#define NAMEGATE_TCP_ACCEPT_H

#include <netinet/in.h>

#include "tcp-engine.h"

/* Most attempts to accept in one turn. */
#define ACCEPT_MAX 256

/* glibc's headers lack these constants. */
#define ORIGINAL_DESTINATION 80
#define IPV6_OLD_PKTOPTIONS 6

static void put_address(struct engine *engine, int which, const struct sockaddr_storage *from)
{
	uint8_t *octets = (uint8_t *)engine->columns[COLUMN_ADDRESSES] + ((size_t)engine->rows * 2 + which) * 16;
	uint16_t *ports = (uint16_t *)engine->columns[COLUMN_PORTS] + (size_t)engine->rows * 2;
	memset(octets, 0, 16);
	ports[which] = 0;
	if (!from)
		return;
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;
		memcpy(octets, &in->sin_addr, 4);
		ports[which] = ntohs(in->sin_port);
	} else {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
		memcpy(octets, &in6->sin6_addr, 16);
		ports[which] = ntohs(in6->sin6_port);
	}
}

/* The server that the client connected to. Returns false if the kernel does not report it. */
static bool asked_address(const struct listener *listener, int fd, struct sockaddr_storage *address)
{
	socklen_t length = sizeof(*address);
	if (listener->flags & LISTEN_REDIRECTED) {
		int level = listener->family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
		return getsockopt(fd, level, ORIGINAL_DESTINATION, address, &length) == 0;
	}
	return getsockname(fd, (struct sockaddr *)address, &length) == 0;
}

/* The interface at which the connection arrived, or 0 if unknown. The kernel keeps the interface of the handshake and returns it
 * as a control message of the connection (net/ipv4/tcp_ipv4.c: mc_index; net/ipv6/tcp_ipv6.c: pktoptions, mcast_oif). */
static uint32_t arrival_interface(const struct listener *listener, int fd)
{
	char control[512] __attribute__((aligned(8)));
	socklen_t length = sizeof(control);
	bool ipv4 = listener->family == AF_INET;
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
	if (getsockopt(fd, level, ipv4 ? IP_PKTOPTIONS : IPV6_OLD_PKTOPTIONS, control, &length) < 0)
		return 0;
	struct msghdr message = { .msg_control = control, .msg_controllen = length };
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (ipv4 && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo found;
			memcpy(&found, CMSG_DATA(c), sizeof(found));
			return (uint32_t)found.ipi_ifindex;
		}
		if (!ipv4 && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo found;
			memcpy(&found, CMSG_DATA(c), sizeof(found));
			return (uint32_t)found.ipi6_ifindex;
		}
	}
	return 0;
}

static void add_accepted(struct engine *engine, uint32_t index, int fd, uint32_t slot,
			 const struct sockaddr_storage *peer)
{
	const struct listener *listener = &engine->listeners[index];
	struct sockaddr_storage asked;
	bool known = (listener->flags & LISTEN_WANT_ASKED) && asked_address(listener, fd, &asked);
	put_address(engine, 0, peer);
	put_address(engine, 1, known ? &asked : NULL);
	((uint8_t *)engine->columns[COLUMN_FAMILIES])[engine->rows] = listener->family == AF_INET ? 4 : 6;
	((uint32_t *)engine->columns[COLUMN_INTERFACES])[engine->rows] =
		listener->flags & LISTEN_WANT_INTERFACE ? arrival_interface(listener, fd) : 0;
	add_row(engine, ROW_ACCEPTED, slot, (int32_t)index, 0);
}

/* Stops a listener that lacks descriptors or memory until `rearm`. Otherwise the kernel would report the listener every turn. */
static void park(struct engine *engine, uint32_t index, int fault)
{
	struct listener *listener = &engine->listeners[index];
	struct epoll_event event = { .events = 0, .data.u64 = LISTENER_BIT | index };
	epoll_ctl(engine->epoll, EPOLL_CTL_MOD, listener->fd, &event);
	listener->parked = true;
	add_row(engine, ROW_FAULT, index, fault, 0);
}

static bool is_shortage(int fault)
{
	return fault == EMFILE || fault == ENFILE || fault == ENOBUFS || fault == ENOMEM;
}

/* Accepts connections of one listener, in at most `most` tries, and returns how many tries it made. Octets of a new connection
 * are often there already. So the connection is served in this turn, before the epoll set knows the connection. */
static uint32_t accept_from(struct engine *engine, uint32_t index, uint32_t most)
{
	struct listener *listener = &engine->listeners[index];
	uint32_t tries = 0;
	while (tries++ < most && engine->rows < engine->rows_max && engine->free_count > 0) {
		struct sockaddr_storage peer;
		socklen_t length = sizeof(peer);
		int fd = accept4(listener->fd, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EAGAIN || errno == EWOULDBLOCK)
				break;
			if (is_shortage(errno)) {
				park(engine, index, errno);
				break;
			}
			/* Only this connection failed (accept(2)), and the next one may succeed. */
			continue;
		}
		engine->sockets++;
		uint32_t slot = (uint32_t)take_slot(engine, fd);
		engine->links[slot].readable = true;
		add_accepted(engine, index, fd, slot, &peer);
		enqueue(engine, slot);
	}
	return tries;
}

#endif
