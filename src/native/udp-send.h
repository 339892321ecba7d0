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

static void watch_out(struct engine *engine, struct udp_socket *socket, bool on)
{
	if (socket->watches_out == on)
		return;
	socket->watches_out = on;
	watch_socket(engine, socket, EPOLL_CTL_MOD);
}

static void keep(struct engine *engine, struct udp_socket *socket, const struct msghdr *header)
{
	size_t length = header->msg_iov->iov_len;
	struct kept *kept = socket->kept < KEPT_MAX ? malloc(sizeof(*kept) + length) : NULL;
	if (!kept) {
		tell(engine, socket, EAGAIN, 1);
		return;
	}
	kept->next = NULL;
	kept->name_length = header->msg_namelen;
	kept->control_length = (uint32_t)header->msg_controllen;
	kept->length = (uint32_t)length;
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
	socket->kept++;
	watch_out(engine, socket, true);
}

static void drop_first_kept(struct udp_socket *socket)
{
	struct kept *kept = socket->first_kept;
	socket->first_kept = kept->next;
	if (!kept->next)
		socket->last_kept = NULL;
	socket->kept--;
	free(kept);
}

/* Sends one datagram that the run could not; 0 or an errno. */
static int send_one(struct engine *engine, struct udp_socket *socket, const struct msghdr *header)
{
	for (;;) {
		if (sendmsg(socket->fd, header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno == EMSGSIZE && (socket->flags & UDP_RAW))
			return send_fragments(engine, socket, header);
		return errno;
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
		int error = send_one(engine, socket, &header);
		if (error == EAGAIN)
			return;
		if (error) {
			socket->errors++;
			tell(engine, socket, error, 1);
		} else {
			socket->sent++;
		}
		drop_first_kept(socket);
	}
	watch_out(engine, socket, false);
}

/* Sends messages 0..count-1 of the scratch. */
static void send_run(struct engine *engine, struct udp_socket *socket, int count)
{
	int at = 0, errors = 0;
	while (at < count && !socket->kept) {
		int sent = sendmmsg(socket->fd, engine->messages + at, (unsigned int)(count - at), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0) {
			at += sent;
			socket->sent += (uint64_t)sent;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			break;
		/* On a connected socket this is the error of an earlier datagram, so this one is tried once more. */
		int error = errno;
		bool again = !(socket->flags & (UDP_LISTENER | UDP_SEND_ONLY));
		if (again || error == EMSGSIZE) {
			int second = send_one(engine, socket, &engine->messages[at].msg_hdr);
			if (second == 0)
				socket->sent++;
			if (again || second) {
				socket->errors++;
				tell(engine, socket, error, second ? 1 : 0);
			}
		} else {
			socket->errors++;
			tell(engine, socket, error, 1);
		}
		at++;
		if (++errors < RUN_ERRORS_MAX)
			continue;
		tell(engine, socket, error, (uint32_t)(count - at));
		return;
	}
	for (; at < count; at++)
		keep(engine, socket, &engine->messages[at].msg_hdr);
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

static void send_rows_of(struct engine *engine, struct udp_socket *socket)
{
	uint32_t at = socket->first_row;
	int count = 0;
	size_t used = 0;
	socket->first_row = NONE;
	for (; at != NONE; at = engine->next_row[at]) {
		const uint32_t *row = engine->rows + (size_t)at * ROW_WORDS;
		uint32_t most = row[ROW_LENGTH] + RAW_HEADERS_MAX;
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
		count++;
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
