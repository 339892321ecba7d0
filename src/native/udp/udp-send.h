/* Sending: the rows of one flush are gathered by socket and leave in runs of sendmmsg. A datagram that the kernel
 * refuses never takes others with it: it is told of and the rest goes on. A full socket keeps a bounded number
 * back until there is room. A row is ROW_WORDS words, see enum row_words. */
#ifndef NAMEGATE_UDP_SEND_H
#define NAMEGATE_UDP_SEND_H

#include "udp-engine.h"
#include "udp-raw.h"

enum row_words { ROW_HANDLE, ROW_AREA, ROW_OFFSET, ROW_LENGTH, ROW_ID, ROW_CLIENTS, ROW_CLIENT, ROW_WORDS = 8 };

/* Errors in one run after which the rest of it is dropped: the route is gone. */
#define RUN_ERRORS_MAX 8
/* Datagrams of equal length to the same place pass the kernel's stack as one (UDP_SEGMENT, Linux 4.18), as long as one
 * of them fits the least way of IPv6 (1,280 octets less headers). */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#define SEGMENT_SPACE CMSG_SPACE(sizeof(uint16_t))
#define SEGMENTS_MAX 64
#define SEGMENT_OCTETS_MAX 1232
#define PIECE_OCTETS_MAX 60000

static void watch_out(struct engine *engine, struct udp_socket *socket, bool on)
{
	if (socket->watches_out == on)
		return;
	socket->watches_out = on;
	watch_socket(engine, socket, EPOLL_CTL_MOD);
}

static void keep(struct engine *engine, struct udp_socket *socket, const struct msghdr *header, uint32_t segments)
{
	size_t length = header->msg_iov->iov_len;
	struct kept *kept = socket->kept + segments <= KEPT_MAX ? malloc(sizeof(*kept) + length) : NULL;
	if (!kept) {
		tell(engine, socket, EAGAIN, segments);
		return;
	}
	kept->next = NULL;
	kept->name_length = header->msg_namelen;
	kept->control_length = (uint32_t)header->msg_controllen;
	kept->length = (uint32_t)length;
	kept->segments = segments;
	if (header->msg_namelen)
		memcpy(&kept->name, header->msg_name, header->msg_namelen);
	if (header->msg_controllen)
		memcpy(kept->control, header->msg_control, header->msg_controllen);
	memcpy(kept->octets, header->msg_iov->iov_base, length);
	if (socket->last_kept)
		socket->last_kept->next = kept;
	else
		socket->first_kept = kept;
	socket->last_kept = kept;
	socket->kept += segments;
	watch_out(engine, socket, true);
}

static void drop_first_kept(struct udp_socket *socket)
{
	struct kept *kept = socket->first_kept;
	socket->first_kept = kept->next;
	if (!kept->next)
		socket->last_kept = NULL;
	socket->kept -= kept->segments;
	free(kept);
}

/* Sends the datagrams of one piece one by one; the errno of the last that failed, or 0, and how many did. */
static int send_apart(struct udp_socket *socket, const struct msghdr *header, uint32_t segments, uint32_t *lost)
{
	uint8_t *octets = header->msg_iov->iov_base;
	size_t size = header->msg_iov->iov_len / segments;
	struct iovec iovec = { NULL, size };
	struct msghdr one = *header;
	int error = 0;
	one.msg_iov = &iovec;
	one.msg_controllen -= SEGMENT_SPACE;
	if (one.msg_controllen == 0)
		one.msg_control = NULL;
	for (uint32_t i = 0; i < segments; i++) {
		iovec.iov_base = octets + i * size;
		if (sendmsg(socket->fd, &one, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			continue;
		error = errno;
		++*lost;
	}
	return error;
}

/* Sends one message that the run could not; 0 or an errno, and how many of its datagrams are lost. */
static int send_one(struct engine *engine, struct udp_socket *socket, const struct msghdr *header, uint32_t segments, uint32_t *lost)
{
	*lost = 0;
	for (;;) {
		if (sendmsg(socket->fd, header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return EAGAIN;
		if (segments > 1) {
			/* No checksum in hardware, a short way, an old kernel: from now on one by one. */
			socket->apart = socket->apart || errno == EIO || errno == EINVAL || errno == EMSGSIZE || errno == EOPNOTSUPP;
			return send_apart(socket, header, segments, lost);
		}
		int error = errno;
		if (error == EMSGSIZE && (socket->flags & UDP_RAW))
			error = send_fragments(engine, socket, header);
		*lost = error ? 1 : 0;
		return error;
	}
}

/* Sends what was kept back, as far as there is room. */
static void send_kept(struct engine *engine, struct udp_socket *socket)
{
	while (socket->first_kept) {
		struct kept *kept = socket->first_kept;
		struct iovec iovec = { kept->octets, kept->length };
		struct msghdr header = {
			.msg_name = kept->name_length ? &kept->name : NULL,
			.msg_namelen = kept->name_length,
			.msg_iov = &iovec,
			.msg_iovlen = 1,
			.msg_control = kept->control_length ? kept->control : NULL,
			.msg_controllen = kept->control_length,
		};
		uint32_t lost, segments = kept->segments;
		int error = send_one(engine, socket, &header, segments, &lost);
		if (error == EAGAIN)
			return;
		socket->sent += segments - lost;
		if (error) {
			socket->errors++;
			tell(engine, socket, error, lost);
		}
		drop_first_kept(socket);
	}
	watch_out(engine, socket, false);
}

/* Message `at` was refused with `error`: tries it once more by itself where that can help, and tells what is lost. */
static void send_refused(struct engine *engine, struct udp_socket *socket, int at, int error)
{
	uint32_t segments = engine->segments[at], lost = segments;
	/* On a connected socket the error is that of an earlier datagram. */
	bool connected = !(socket->flags & (UDP_LISTENER | UDP_SEND_ONLY));
	if (connected || segments > 1 || error == EMSGSIZE) {
		int second = send_one(engine, socket, &engine->messages[at].msg_hdr, segments, &lost);
		if (second == EAGAIN)
			lost = segments;
		if (second == 0 && !connected)
			error = 0;
	}
	socket->sent += segments - lost;
	if (error == 0)
		return;
	socket->errors++;
	tell(engine, socket, error, lost);
}

/* Sends messages 0..count-1 of the scratch. */
static void send_run(struct engine *engine, struct udp_socket *socket, int count)
{
	int at = 0, errors = 0;
	while (at < count && !socket->kept) {
		int sent = sendmmsg(socket->fd, engine->messages + at, (unsigned int)(count - at), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0) {
			for (int end = at + sent; at < end; at++)
				socket->sent += engine->segments[at];
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			break;
		int error = errno;
		send_refused(engine, socket, at++, error);
		if (++errors < RUN_ERRORS_MAX)
			continue;
		for (; at < count; at++)
			tell(engine, socket, error, engine->segments[at]);
		return;
	}
	for (; at < count; at++)
		keep(engine, socket, &engine->messages[at].msg_hdr, engine->segments[at]);
}

/* The control message that makes an answer leave from the address that was asked. */
static void set_source(struct msghdr *header, unsigned char *control, uint8_t family, const uint8_t *asked, uint32_t scope)
{
	struct cmsghdr *c = (struct cmsghdr *)control;
	header->msg_control = control;
	if (family == 4) {
		struct in_pktinfo info = {};
		memcpy(&info.ipi_spec_dst, asked, 4);
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(info)), IPPROTO_IP, IP_PKTINFO };
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		header->msg_controllen = CMSG_SPACE(sizeof(info));
		return;
	}
	struct in6_pktinfo info = {};
	memcpy(&info.ipi6_addr, asked, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))
		info.ipi6_ifindex = scope;
	*c = (struct cmsghdr){ CMSG_LEN(sizeof(info)), IPPROTO_IPV6, IPV6_PKTINFO };
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	header->msg_controllen = CMSG_SPACE(sizeof(info));
}

/* Makes message `i` of a row, its octets at `into`; the octets used, 0 when the row is not sound. */
static size_t make_message(struct engine *engine, struct udp_socket *socket, const uint32_t *row, int i, uint8_t *into)
{
	struct msghdr *header = &engine->messages[i].msg_hdr;
	uint32_t offset = row[ROW_OFFSET], length = row[ROW_LENGTH];
	if (row[ROW_AREA] >= AREAS_MAX || length < 2)
		return 0;
	struct area *area = &engine->areas[row[ROW_AREA]];
	if (offset > area->size || length > area->size - offset)
		return 0;
	*header = (struct msghdr){ .msg_iov = &engine->iovecs[i], .msg_iovlen = 1 };
	size_t front = 0;
	if (socket->flags & (UDP_LISTENER | UDP_SEND_ONLY)) {
		struct clients *clients = row[ROW_CLIENTS] < CLIENTS_MAX ? &engine->clients[row[ROW_CLIENTS]] : NULL;
		uint32_t at = row[ROW_CLIENT];
		if (!clients || at >= clients->rows || clients->families[at] != socket->family)
			return 0;
		const uint8_t *asked = clients->asked_addresses + (size_t)at * 16;
		const uint8_t *peer = clients->addresses + (size_t)at * 16;
		uint32_t scope = clients->interfaces[at];
		bool raw = socket->flags & UDP_RAW;
		engine->names[i] = make_address(socket->family, peer, raw ? 0 : clients->ports[at], scope);
		header->msg_name = &engine->names[i];
		header->msg_namelen = address_length(socket->family);
		if (raw)
			front = raw_headers(into, socket->family, asked, clients->asked_ports[at], peer, clients->ports[at], length);
		else if (clients->asked_ports[at])
			set_source(header, engine->controls[i], socket->family, asked, scope);
	}
	memcpy(into + front, area->octets + offset, length);
	into[front] = (uint8_t)(row[ROW_ID] >> 8);
	into[front + 1] = (uint8_t)row[ROW_ID];
	if (front)
		raw_checksum(into, socket->family, length);
	engine->iovecs[i] = (struct iovec){ into, front + length };
	return front + length;
}

/* Whether message i may leave in one piece with the one before it, which lies right before it in memory. */
static bool joins(struct engine *engine, int i, size_t size)
{
	struct msghdr *before = &engine->messages[i - 1].msg_hdr, *own = &engine->messages[i].msg_hdr;
	uint32_t segments = engine->segments[i - 1];
	size_t control = before->msg_controllen - (segments > 1 ? SEGMENT_SPACE : 0);
	size_t length = before->msg_iov->iov_len;
	return size <= SEGMENT_OCTETS_MAX && size * segments == length && segments < SEGMENTS_MAX &&
	       length + size <= PIECE_OCTETS_MAX && before->msg_namelen == own->msg_namelen && control == own->msg_controllen &&
	       (own->msg_namelen == 0 || memcmp(before->msg_name, own->msg_name, own->msg_namelen) == 0) &&
	       (control == 0 || memcmp(before->msg_control, own->msg_control, control) == 0);
}

/* Adds a datagram of `size` octets to message i. */
static void join(struct engine *engine, int i, size_t size)
{
	struct msghdr *header = &engine->messages[i].msg_hdr;
	header->msg_iov->iov_len += size;
	if (engine->segments[i]++ > 1)
		return;
	uint16_t segment = (uint16_t)size;
	struct cmsghdr *c = (struct cmsghdr *)(engine->controls[i] + header->msg_controllen);
	*c = (struct cmsghdr){ CMSG_LEN(sizeof(segment)), IPPROTO_UDP, UDP_SEGMENT };
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	header->msg_control = engine->controls[i];
	header->msg_controllen += SEGMENT_SPACE;
}

/* Where rows of equal length to the same client meet. Others may meet there as well. */
static uint32_t bucket_of(struct engine *engine, struct udp_socket *socket, const uint32_t *row)
{
	uint32_t hash = row[ROW_LENGTH];
	if ((socket->flags & (UDP_LISTENER | UDP_SEND_ONLY)) && row[ROW_CLIENTS] < CLIENTS_MAX) {
		struct clients *clients = &engine->clients[row[ROW_CLIENTS]];
		uint32_t at = row[ROW_CLIENT], word;
		if (at < clients->rows) {
			memcpy(&word, clients->addresses + (size_t)at * 16 + (socket->family == 4 ? 0 : 12), 4);
			hash += (word ^ (uint32_t)clients->ports[at] << 8) * 0x9e3779b1u;
		}
	}
	return (hash ^ hash >> 16) % BUCKETS;
}

/* Puts the rows of a socket in an order in which those that may leave together follow each other; the first of them. */
static uint32_t order_rows(struct engine *engine, struct udp_socket *socket, uint32_t first)
{
	uint32_t heads[ROWS_MAX], tails[ROWS_MAX], used[ROWS_MAX], count = 0;
	for (uint32_t at = first, next; at != NONE; at = next) {
		uint32_t bucket = bucket_of(engine, socket, engine->rows + (size_t)at * ROW_WORDS);
		next = engine->next_row[at];
		engine->next_row[at] = NONE;
		if (engine->buckets[bucket] == 0) {
			heads[count] = tails[count] = at;
			used[count++] = bucket;
			engine->buckets[bucket] = count;
			continue;
		}
		uint32_t list = engine->buckets[bucket] - 1;
		engine->next_row[tails[list]] = at;
		tails[list] = at;
	}
	for (uint32_t i = 0; i < count; i++) {
		engine->buckets[used[i]] = 0;
		if (i + 1 < count)
			engine->next_row[tails[i]] = heads[i + 1];
	}
	return heads[0];
}

static void send_rows_of(struct engine *engine, struct udp_socket *socket)
{
	bool joining = !socket->apart && !(socket->flags & UDP_RAW) && engine->next_row[socket->first_row] != NONE;
	uint32_t at = joining ? order_rows(engine, socket, socket->first_row) : socket->first_row;
	int count = 0;
	size_t used = 0;
	socket->first_row = NONE;
	for (; at != NONE; at = engine->next_row[at]) {
		const uint32_t *row = engine->rows + (size_t)at * ROW_WORDS;
		size_t most = (size_t)row[ROW_LENGTH] + RAW_HEADERS_MAX;
		if (row[ROW_LENGTH] > UINT16_MAX) {
			tell(engine, socket, EMSGSIZE, 1);
			continue;
		}
		if (count == RUN_MAX || used + most > sizeof(engine->buffer)) {
			send_run(engine, socket, count);
			count = 0;
			used = 0;
		}
		size_t size = make_message(engine, socket, row, count, engine->buffer + used);
		if (size == 0) {
			tell(engine, socket, EINVAL, 1);
			continue;
		}
		used += size;
		if (joining && count > 0 && joins(engine, count, size)) {
			join(engine, count - 1, size);
			continue;
		}
		engine->segments[count++] = 1;
	}
	if (count > 0)
		send_run(engine, socket, count);
}

/* Sends rows 0..count-1. Rows of sockets that have closed are dropped: what they answer is over. */
static void send_rows(struct engine *engine, uint32_t count)
{
	uint32_t touched[ROWS_MAX], sockets = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t handle = engine->rows[(size_t)i * ROW_WORDS + ROW_HANDLE];
		struct udp_socket *socket = socket_of(engine, handle);
		if (!socket)
			continue;
		engine->next_row[i] = NONE;
		if (socket->first_row == NONE) {
			socket->first_row = i;
			touched[sockets++] = handle & 0xffff;
		} else {
			engine->next_row[socket->last_row] = i;
		}
		socket->last_row = i;
	}
	for (uint32_t i = 0; i < sockets; i++)
		send_rows_of(engine, &engine->sockets[touched[i]]);
}

#endif
