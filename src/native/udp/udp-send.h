/* This file sends datagrams. It groups the rows of one flush by socket and sends them in runs of sendmmsg. If the kernel refuses
 * a datagram, the datagram is reported and the rest of the run is sent. A socket whose kernel buffer is full keeps at most
 * KEPT_MAX datagrams until the kernel has room. A row has ROW_WORDS words, see enum row_words. */
#ifndef NAMEGATE_UDP_SEND_H
#define NAMEGATE_UDP_SEND_H

#include "udp-engine.h"
#include "udp-raw.h"

enum row_words { ROW_HANDLE, ROW_AREA, ROW_OFFSET, ROW_LENGTH, ROW_ID, ROW_CLIENTS, ROW_CLIENT, ROW_WORDS = 8 };

/* After this many errors in one run the rest of the run is dropped, because the route is gone. */
#define RUN_ERRORS_MAX 8
/* Datagrams of equal length to the same client pass through the kernel's stack as one piece (UDP_SEGMENT, Linux 4.18). Each
 * datagram must fit into the smallest MTU of IPv6 (1,280 octets less headers). */
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
		report(engine, socket, EAGAIN, segments);
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

/* Sends the datagrams of one piece one by one. Returns the last errno, or 0. `lost` is how many datagrams failed. */
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

/* Sends one message that the run could not send. Returns 0 or an errno. `lost` is how many of its datagrams failed. */
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
			/* The network card computes no checksum, the MTU is too small, or the kernel is too old. The socket sends
			 * one by one from here on. */
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

/* Sends the datagrams that were kept back, until the kernel's buffer is full again. */
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
			report(engine, socket, error, lost);
		}
		drop_first_kept(socket);
	}
	watch_out(engine, socket, false);
}

/* The kernel refused message `at` with `error`. Sends the message once more by itself where that can help, and reports the loss. */
static void send_refused(struct engine *engine, struct udp_socket *socket, int at, int error)
{
	uint32_t segments = engine->segments[at], lost = segments;
	/* On a connected socket the error belongs to an earlier datagram. */
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
	report(engine, socket, error, lost);
}

/* Sends messages 0..count-1 of the scratch memory. */
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
			report(engine, socket, error, engine->segments[at]);
		return;
	}
	for (; at < count; at++)
		keep(engine, socket, &engine->messages[at].msg_hdr, engine->segments[at]);
}

/* In musl, the struct has a field more, so its fields are named here. */
static struct cmsghdr control_header(size_t size, int level, int type)
{
	return (struct cmsghdr){ .cmsg_len = CMSG_LEN(size), .cmsg_level = level, .cmsg_type = type };
}

/* Adds the control message that makes an answer leave from the asked address. */
static void set_source(struct msghdr *header, unsigned char *control, uint8_t family, const uint8_t *asked, uint32_t scope)
{
	struct cmsghdr *c = (struct cmsghdr *)control;
	header->msg_control = control;
	if (family == 4) {
		struct in_pktinfo info = {};
		memcpy(&info.ipi_spec_dst, asked, 4);
		*c = control_header(sizeof(info), IPPROTO_IP, IP_PKTINFO);
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		header->msg_controllen = CMSG_SPACE(sizeof(info));
		return;
	}
	struct in6_pktinfo info = {};
	memcpy(&info.ipi6_addr, asked, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))
		info.ipi6_ifindex = scope;
	*c = control_header(sizeof(info), IPPROTO_IPV6, IPV6_PKTINFO);
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	header->msg_controllen = CMSG_SPACE(sizeof(info));
}

/* Makes scratch message `i` from a row and writes its octets at `into`. Returns how many octets it wrote, or 0 if the row is
 * invalid. */
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

/* True if message `i` can leave in one piece with the message before it. The octets of the two are adjacent in memory. */
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
	*c = control_header(sizeof(segment), IPPROTO_UDP, UDP_SEGMENT);
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	header->msg_control = engine->controls[i];
	header->msg_controllen += SEGMENT_SPACE;
}

/* Rows of equal length to the same client fall into the same bucket. Other rows can fall into that bucket too. */
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

/* Orders the rows of a socket so that rows that can leave in one piece follow each other. Returns the first row. */
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
			report(engine, socket, EMSGSIZE, 1);
			continue;
		}
		if (count == RUN_MAX || used + most > sizeof(engine->buffer)) {
			send_run(engine, socket, count);
			count = 0;
			used = 0;
		}
		size_t size = make_message(engine, socket, row, count, engine->buffer + used);
		if (size == 0) {
			report(engine, socket, EINVAL, 1);
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

/* Sends rows 0..count-1. Drops the rows of closed sockets, because no peer waits for them. */
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
