/* This file sends chains of frames from one slab. It keeps octets that the kernel does not accept, and sends them when the kernel
 * has room. */
#ifndef NAMEGATE_TCP_SEND_H
#define NAMEGATE_TCP_SEND_H

#include <sys/uio.h>

#include "tcp-engine.h"

#define IOV_MAX_USED 64
/* Most octets of one connection that can wait for the kernel. JavaScript has lower bounds of its own. */
#define PENDING_MAX (16u << 20)

/* Keeps octets that the kernel did not accept. */
static int keep(struct link *link, const void *octets, size_t length)
{
	size_t waits = link->end - link->start;
	if (waits + length > PENDING_MAX)
		return -ENOBUFS;
	if (link->room - link->end < length && link->start > 0) {
		memmove(link->pending, link->pending + link->start, waits);
		link->start = 0;
		link->end = waits;
	}
	if (link->room - link->end < length) {
		size_t room = link->room ? link->room : 4096;
		while (room < link->end + length)
			room *= 2;
		char *grown = realloc(link->pending, room);
		if (!grown)
			return -ENOMEM;
		link->pending = grown;
		link->room = room;
	}
	memcpy(link->pending + link->end, octets, length);
	link->end += length;
	return 0;
}

/* Returns how many octets were sent, 0 if the kernel accepts none now, or -errno. */
static ssize_t send_some(int fd, struct iovec *parts, int count)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = (size_t)count };
	for (;;) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0)
			return sent;
		if (errno == EINTR)
			continue;
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	}
}

/* Tries again to send the octets that wait. */
static void send_pending(struct engine *engine, uint32_t slot)
{
	struct link *link = &engine->links[slot];
	bool progress = false;
	while (link->end > link->start) {
		struct iovec part = { link->pending + link->start, link->end - link->start };
		ssize_t sent = send_some(link->fd, &part, 1);
		if (sent < 0) {
			fail(engine, slot, (int)-sent);
			break;
		}
		if (sent == 0)
			break;
		link->start += (size_t)sent;
		progress = true;
	}
	if (link->end == link->start) {
		free(link->pending);
		link->pending = NULL;
		link->start = link->end = link->room = 0;
	}
	((uint32_t *)engine->columns[COLUMN_UNSENT])[slot] = (uint32_t)(link->end - link->start);
	if (progress)
		add_row(engine, ROW_TAKEN, slot, 0, 0);
}

/* Collects the next parts of a chain of frames, and joins neighbours. Returns -1 if a frame lies outside `out`, or if the chain
 * is longer than `left`, which means that it is a loop. */
static int next_parts(struct engine *engine, int32_t *frame, struct iovec *parts, size_t *total, size_t *left)
{
	const int32_t *frames = engine->columns[COLUMN_FRAMES];
	size_t count = engine->sizes[COLUMN_FRAMES] / 12, size = engine->sizes[COLUMN_OUT];
	char *out = engine->columns[COLUMN_OUT];
	int used = 0;
	*total = 0;
	while (*frame >= 0) {
		if ((size_t)*frame >= count || *left == 0)
			return -1;
		uint32_t offset = (uint32_t)frames[*frame * 3], length = (uint32_t)frames[*frame * 3 + 1];
		if (offset > size || length > size - offset)
			return -1;
		struct iovec *last = used ? &parts[used - 1] : NULL;
		if (last && (char *)last->iov_base + last->iov_len == out + offset)
			last->iov_len += length;
		else if (used < IOV_MAX_USED)
			parts[used++] = (struct iovec){ out + offset, length };
		else
			break;
		*total += length;
		(*left)--;
		*frame = frames[*frame * 3 + 2];
	}
	return used;
}

/* Keeps the octets of the parts after the first `sent`. */
static int keep_rest(struct link *link, struct iovec *parts, int used, size_t sent)
{
	for (int i = 0; i < used; i++) {
		size_t skip = sent < parts[i].iov_len ? sent : parts[i].iov_len;
		sent -= skip;
		if (skip == parts[i].iov_len)
			continue;
		int result = keep(link, (char *)parts[i].iov_base + skip, parts[i].iov_len - skip);
		if (result < 0)
			return result;
	}
	return 0;
}

static int send_chain(struct engine *engine, uint32_t slot, int32_t frame)
{
	struct link *link = &engine->links[slot];
	struct iovec parts[IOV_MAX_USED];
	size_t total;
	size_t left = engine->sizes[COLUMN_FRAMES] / 12;
	while (frame >= 0) {
		int used = next_parts(engine, &frame, parts, &total, &left);
		if (used < 0)
			return -EINVAL;
		ssize_t sent = link->end > link->start ? 0 : send_some(link->fd, parts, used);
		if (sent < 0)
			return (int)sent;
		if ((size_t)sent < total) {
			int result = keep_rest(link, parts, used, (size_t)sent);
			if (result < 0)
				return result;
		}
	}
	if (link->end > link->start && !link->watches_out)
		return watch_link(engine, slot, true);
	return 0;
}

/* send(engine, slot, frame) -> 0, or -errno. Sends a chain of frames and keeps what the kernel does not accept. After an error,
 * the next turn has a row that reports it. */
static napi_value send_frames(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1);
	int32_t frame = integer(&call, 2);
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	if (!link)
		return number(env, -EBADF);
	int result = link->broken ? -EPIPE : send_chain(engine, slot, frame);
	if (result < 0)
		fail(engine, slot, -result);
	((uint32_t *)engine->columns[COLUMN_UNSENT])[slot] = (uint32_t)(link->end - link->start);
	return number(env, result);
}

#endif
