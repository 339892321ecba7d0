/* This file receives datagrams straight from the kernel into the cells and columns of a batch. `poll` finds the sockets that have
 * datagrams. `receive_queries` and `receive_answers` then read these sockets until the batch is full. */
#ifndef NAMEGATE_UDP_RECEIVE_H
#define NAMEGATE_UDP_RECEIVE_H

#include "udp-send.h"

#define EVENTS_MAX 128
/* How many errors are read from one socket in a row. Each error is one ICMP message. */
#define ERRORS_MAX 8

/* Finds sockets with datagrams to read, and sends what full sockets kept back. */
static void find_ready(struct engine *engine)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(engine->epoll, events, EVENTS_MAX, 0);
	for (int i = 0; i < count; i++) {
		struct udp_socket *socket = socket_of(engine, events[i].data.u32);
		if (!socket)
			continue;
		if (events[i].events & EPOLLOUT)
			send_kept(engine, socket);
		if (!(events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
			continue;
		bool listens = socket->flags & UDP_LISTENER;
		make_ready(listens ? &engine->queries : &engine->answers, socket, events[i].data.u32 & 0xffff);
	}
}

/* The next socket to read, or NULL. `done_reading` removes it from the list. */
static struct udp_socket *next_ready(struct engine *engine, struct ready *ready)
{
	while (ready->from != ready->to) {
		struct udp_socket *socket = &engine->sockets[ready->list[ready->from % SOCKETS_MAX]];
		if (socket->fd >= 0 && socket->ready)
			return socket;
		ready->from++;
	}
	return NULL;
}

static void done_reading(struct ready *ready, struct udp_socket *socket)
{
	socket->ready = false;
	ready->from++;
}

/* Receives up to `room` datagrams into consecutive cells. Returns how many it received; 0 if the socket has none. */
static int receive_run(struct engine *engine, struct udp_socket *socket, uint8_t *cells, size_t cell, size_t length,
		       int room, bool named)
{
	for (int i = 0; i < room; i++) {
		struct msghdr *header = &engine->messages[i].msg_hdr;
		engine->iovecs[i] = (struct iovec){ cells + (size_t)i * cell, length };
		*header = (struct msghdr){ .msg_iov = &engine->iovecs[i], .msg_iovlen = 1 };
		if (!named)
			continue;
		header->msg_name = &engine->names[i];
		header->msg_namelen = sizeof(engine->names[i]);
		header->msg_control = engine->controls[i];
		header->msg_controllen = CONTROL_OCTETS;
	}
	for (int errors = 0; errors < ERRORS_MAX;) {
		int got = recvmmsg(socket->fd, engine->messages, (unsigned int)room, MSG_DONTWAIT, NULL);
		if (got >= 0)
			return got;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		if (errno == EINTR)
			continue;
		errors++;
		socket->errors++;
		report(engine, socket, errno, 0);
	}
	return 0;
}

/* True if a query from this address can be answered: the address is one host, and the port is not 0 (docs/spec/semantics 4). */
static bool is_answerable(const struct sockaddr_in6 *name)
{
	if (name->sin6_port == 0)
		return false;
	if (name->sin6_family == AF_INET6)
		return !IN6_IS_ADDR_MULTICAST(&name->sin6_addr) && !IN6_IS_ADDR_UNSPECIFIED(&name->sin6_addr);
	uint32_t address = ntohl(((const struct sockaddr_in *)name)->sin_addr.s_addr);
	return address != 0 && !IN_MULTICAST(address) && address != INADDR_BROADCAST;
}

/* True if a datagram was sent to one host. Normally the kernel reports the destination address twice, and for one host the two
 * are equal. If another process bound the socket and the datagram arrived before IP_PKTINFO was set, the kernel reports the
 * address once. Then only multicast and broadcast can be recognized. */
static bool is_single(const struct in_pktinfo *info)
{
	uint32_t address = ntohl(info->ipi_addr.s_addr);
	if (info->ipi_spec_dst.s_addr == 0)
		return !IN_MULTICAST(address) && address != INADDR_BROADCAST;
	return info->ipi_addr.s_addr == info->ipi_spec_dst.s_addr;
}

/* Reads the interface and the asked address of message `at`. Returns false if the datagram was sent to more than one host. */
static bool read_control(struct udp_socket *socket, struct clients *clients, uint32_t at, struct msghdr *header)
{
	uint8_t *asked = clients->asked_addresses + (size_t)at * 16;
	bool single = true;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			clients->interfaces[at] = (uint32_t)info.ipi_ifindex;
			single = single && is_single(&info);
			if (!(socket->flags & UDP_WANT_ASKED))
				continue;
			memcpy(asked, &info.ipi_addr, 4);
			clients->asked_ports[at] = socket->port;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			clients->interfaces[at] = info.ipi6_ifindex;
			single = single && !IN6_IS_ADDR_MULTICAST(&info.ipi6_addr);
			if (!(socket->flags & UDP_WANT_ASKED))
				continue;
			memcpy(asked, &info.ipi6_addr, 16);
			clients->asked_ports[at] = socket->port;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVORIGDSTADDR) {
			struct sockaddr_in original;
			memcpy(&original, CMSG_DATA(c), sizeof(original));
			memcpy(asked, &original.sin_addr, 4);
			clients->asked_ports[at] = ntohs(original.sin_port);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVORIGDSTADDR) {
			struct sockaddr_in6 original;
			memcpy(&original, CMSG_DATA(c), sizeof(original));
			memcpy(asked, &original.sin6_addr, 16);
			clients->asked_ports[at] = ntohs(original.sin6_port);
		}
	}
	return single;
}

/* Fills the columns of message `at` of the batch from scratch message `i`. Returns false if the datagram allows no reply. */
static bool take_query(struct engine *engine, struct udp_socket *socket, uint32_t at, int i, size_t stride)
{
	struct clients *clients = &engine->clients[0];
	struct msghdr *header = &engine->messages[i].msg_hdr;
	const struct sockaddr_in6 *name = &engine->names[i];
	uint32_t length = engine->messages[i].msg_len;
	uint8_t *address = clients->addresses + (size_t)at * 16;
	if (!is_answerable(name))
		return false;
	bool cut = header->msg_flags & MSG_TRUNC;
	memset(clients->asked_addresses + (size_t)at * 16, 0, 16);
	clients->asked_ports[at] = 0;
	clients->interfaces[at] = 0;
	if (!read_control(socket, clients, at, header))
		return false;
	if (name->sin6_family == AF_INET) {
		memset(address + 4, 0, 12);
		memcpy(address, &((const struct sockaddr_in *)name)->sin_addr, 4);
		clients->families[at] = 4;
	} else {
		memcpy(address, &name->sin6_addr, 16);
		clients->families[at] = 6;
		/* A link-local client has a scope, which is its interface. */
		if (name->sin6_scope_id)
			clients->interfaces[at] = name->sin6_scope_id;
	}
	clients->ports[at] = ntohs(name->sin6_port);
	clients->transports[at] = 0;
	clients->channels[at] = socket->channel;
	engine->query_offsets[at] = (uint32_t)(at * stride);
	engine->query_lengths[at] = length;
	engine->query_oversized[at] = cut;
	socket->oversized += cut;
	return true;
}

/* Fills messages start..start+room-1 of the batch, and returns how many it filled. A cell has `stride` octets, of which `length`
 * are used. */
static uint32_t receive_queries(struct engine *engine, uint32_t start, uint32_t room, size_t stride, size_t length)
{
	struct udp_socket *socket;
	uint8_t *slab = engine->areas[0].octets;
	uint32_t at = start;
	while (at < start + room && (socket = next_ready(engine, &engine->queries))) {
		int asked = (int)(start + room - at < RUN_MAX ? start + room - at : RUN_MAX);
		uint32_t first = at;
		int got = receive_run(engine, socket, slab + first * stride, stride, length, asked, true);
		socket->received += (uint64_t)got;
		for (int i = 0; i < got; i++) {
			if (!take_query(engine, socket, at, i, stride)) {
				socket->ignored++;
				continue;
			}
			if (at != first + (uint32_t)i)
				memcpy(slab + at * stride, slab + (first + (uint32_t)i) * stride, engine->query_lengths[at]);
			at++;
		}
		if (got < asked)
			done_reading(&engine->queries, socket);
	}
	return at - start;
}

/* Fills the answers from index 0 on, and returns how many it filled. */
static uint32_t receive_answers(struct engine *engine, size_t stride, size_t length)
{
	struct udp_socket *socket;
	uint8_t *slab = engine->areas[1].octets;
	uint32_t at = 0;
	while (at < engine->answer_room && (socket = next_ready(engine, &engine->answers))) {
		uint32_t left = engine->answer_room - at;
		int asked = (int)(left < RUN_MAX ? left : RUN_MAX);
		int got = receive_run(engine, socket, slab + at * stride, stride, length, asked, false);
		socket->received += (uint64_t)got;
		for (int i = 0; i < got; i++, at++) {
			engine->answer_handles[at] = handle_of(engine, socket);
			engine->answer_offsets[at] = (uint32_t)(at * stride);
			engine->answer_lengths[at] = engine->messages[i].msg_len;
		}
		if (got < asked)
			done_reading(&engine->answers, socket);
	}
	return at;
}

#endif
