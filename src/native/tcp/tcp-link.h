/* This file handles single connections: those that the engine opens, those that another process accepted, and what JavaScript
 * does with each connection. */
#ifndef NAMEGATE_TCP_LINK_H
#define NAMEGATE_TCP_LINK_H

#include "tcp-send.h"
#include "tcp-socket.h"

/* linkDescriptor(engine, slot) -> the descriptor, or -EBADF if the slot is free. The engine still owns the descriptor. */
static napi_value link_descriptor(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1);
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	return number(env, link ? link->fd : -EBADF);
}

/* unsentOctets(engine, slot, into) -> how many octets wait for the kernel, or -EBADF. Copies as many of them as `into` can hold. */
static napi_value unsent_octets(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1);
	size_t size = 0;
	uint8_t *into = octets(&call, 2, 0, &size);
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	if (!link)
		return number(env, -EBADF);
	size_t waits = link->end - link->start;
	if (waits > 0)
		memcpy(into, link->pending + link->start, waits < size ? waits : size);
	return number(env, (double)waits);
}

/* adopt(engine, fd, unsent: octets) -> the slot, or -errno. Adopts a connection that another process accepted, and sends `unsent`
 * first. The connection is not read until `reading`. The engine owns the descriptor, even if the call fails. */
static napi_value adopt(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	size_t size = 0;
	int fd = integer(&call, 1);
	uint8_t *unsent = octets(&call, 2, 0, &size);
	if (call.bad)
		return NULL;
	int64_t slot = take_slot(engine, fd);
	int result = slot < 0 ? -EMFILE : socket_opened(engine);
	if (result < 0) {
		if (slot >= 0)
			drop_link(engine, (uint32_t)slot);
		else
			close(fd);
		return number(env, result);
	}
	struct link *link = &engine->links[slot];
	link->reading = false;
	result = size > 0 ? keep(link, unsent, size) : 0;
	if (result == 0)
		result = watch_link(engine, (uint32_t)slot, size > 0);
	if (result < 0) {
		drop_link(engine, (uint32_t)slot);
		socket_closed(engine);
		return number(env, result);
	}
	((uint32_t *)engine->columns[COLUMN_UNSENT])[slot] = (uint32_t)size;
	return number(env, (double)slot);
}

static int begin_connect(struct engine *engine, int family, const uint8_t *octets16, uint32_t port, uint32_t mark)
{
	struct sockaddr_storage address;
	socklen_t length = fill_address(&address, family, octets16, port);
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int result = set_flag(fd, IPPROTO_TCP, TCP_NODELAY) < 0 ? -errno : 0;
	/* The mark is set before connect, so that the first packet carries it. */
	if (result == 0 && mark && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
		result = -errno;
	if (result == 0 && connect(fd, (struct sockaddr *)&address, length) < 0 && errno != EINPROGRESS)
		result = -errno;
	int64_t slot = result == 0 ? take_slot(engine, fd) : -1;
	if (result == 0 && slot < 0)
		result = -EMFILE;
	if (result == 0)
		result = socket_opened(engine);
	if (result < 0) {
		if (slot >= 0)
			drop_link(engine, (uint32_t)slot);
		else
			close(fd);
		return result;
	}
	result = watch_link(engine, (uint32_t)slot, true);
	if (result < 0) {
		drop_link(engine, (uint32_t)slot);
		socket_closed(engine);
		return result;
	}
	return (int)slot;
}

/* mayMark(mark) -> 0 if this process can set SO_MARK, else -EPERM */
static napi_value may_mark(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	uint32_t mark = unsigned_integer(&call, 0);
	if (call.bad)
		return NULL;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return number(env, -errno);
	int result = setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ? -errno : 0;
	close(fd);
	return number(env, result);
}

/* connect(engine, family, octets16, port, mark) -> the slot, or -errno. Mark 0 means no mark. Octets that are sent before the
 * connection is established wait. */
static napi_value connect_to(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	int family = family_of(&call, 1);
	const uint8_t *octets16 = octets(&call, 2, 16, NULL);
	uint32_t port = unsigned_integer(&call, 3), mark = unsigned_integer(&call, 4);
	if (call.bad)
		return NULL;
	return number(env, begin_connect(engine, family, octets16, port, mark));
}

/* close(engine, slot, reset) -> 0, or -EBADF. With `reset` the kernel sends RST and discards unsent octets. */
static napi_value close_link(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1), reset = unsigned_integer(&call, 2);
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	if (!link)
		return number(env, -EBADF);
	if (reset)
		setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	drop_link(engine, slot);
	socket_closed(engine);
	return number(env, 0);
}

/* reading(engine, slot, on) -> 1 if the connection can be read at once, 0 if not, -EBADF */
static napi_value set_reading(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1), on = unsigned_integer(&call, 2);
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	if (!link)
		return number(env, -EBADF);
	link->reading = on != 0;
	if (!may_read(link))
		return number(env, 0);
	enqueue(engine, slot);
	return number(env, 1);
}

#endif
