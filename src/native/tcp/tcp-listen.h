/* This file opens listeners, or adopts sockets that another process bound. It switches listeners on and off, closes them, and
 * reports their descriptors for the next daemon. The connections of a listener stay open when the listener is closed. */
#ifndef NAMEGATE_TCP_LISTEN_H
#define NAMEGATE_TCP_LISTEN_H

#include "tcp-engine.h"
#include "tcp-socket.h"

static int prepare_listener(int fd, int family, uint32_t flags)
{
	bool ipv4 = family == AF_INET;
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
	if (set_flag(fd, SOL_SOCKET, SO_REUSEADDR) < 0 || set_flag(fd, IPPROTO_TCP, TCP_NODELAY) < 0)
		return -errno;
	if (!ipv4 && set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY) < 0)
		return -errno;
	/* These flags must precede bind. Otherwise the kernel does not assign connections to other addresses to this listener. */
	if ((flags & LISTEN_TRANSPARENT) && (set_flag(fd, level, ipv4 ? IP_TRANSPARENT : IPV6_TRANSPARENT) < 0 ||
					     set_flag(fd, level, ipv4 ? IP_FREEBIND : IPV6_FREEBIND) < 0))
		return -errno;
	/* Accepted connections inherit this flag. */
	if ((flags & LISTEN_WANT_INTERFACE) && set_flag(fd, level, ipv4 ? IP_PKTINFO : IPV6_RECVPKTINFO) < 0)
		return -errno;
	return 0;
}

/* Sets what connections inherit, on a socket that another process bound. */
static int prepare_given(int fd, int family, uint32_t flags)
{
	bool ipv4 = family == AF_INET;
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
	if (set_flag(fd, IPPROTO_TCP, TCP_NODELAY) < 0)
		return -errno;
	if ((flags & LISTEN_TRANSPARENT) && set_flag(fd, level, ipv4 ? IP_TRANSPARENT : IPV6_TRANSPARENT) < 0)
		return -errno;
	if ((flags & LISTEN_WANT_INTERFACE) && set_flag(fd, level, ipv4 ? IP_PKTINFO : IPV6_RECVPKTINFO) < 0)
		return -errno;
	return 0;
}

static int open_listener(struct engine *engine, uint32_t index, int family, const uint8_t *octets16, uint32_t port,
			 uint32_t flags, uint32_t backlog, int given)
{
	struct sockaddr_storage address;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = LISTENER_BIT | index };
	socklen_t length = fill_address(&address, family, octets16, port);
	int fd = given >= 0 ? given : socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int result = given >= 0 ? prepare_given(fd, family, flags) : prepare_listener(fd, family, flags);
	if (result == 0 && ((given < 0 && bind(fd, (struct sockaddr *)&address, length) < 0) || listen(fd, (int)backlog) < 0 ||
			    epoll_ctl(engine->epoll, EPOLL_CTL_ADD, fd, &event) < 0))
		result = -errno;
	if (result == 0)
		result = socket_opened(engine);
	if (result < 0) {
		close(fd);
		return result;
	}
	engine->listeners[index] = (struct listener){ .fd = fd, .family = family, .flags = flags };
	return (int)index;
}

/* listen(engine, family, octets16, port, flags, backlog, given) -> the listener, or -errno. `given` is a socket that is already
 * bound, or -1. If the call fails, it closes `given`. */
static napi_value listen_on(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	int family = family_of(&call, 1);
	const uint8_t *octets16 = octets(&call, 2, 16, NULL);
	uint32_t port = unsigned_integer(&call, 3), flags = unsigned_integer(&call, 4);
	uint32_t backlog = unsigned_integer(&call, 5);
	int given = integer(&call, 6);
	if (call.bad)
		return NULL;
	for (uint32_t i = 0; i < LISTENERS_MAX; i++)
		if (engine->listeners[i].fd < 0)
			return number(env, open_listener(engine, i, family, octets16, port, flags, backlog, given));
	return number(env, -ENOSPC);
}

/* portOf(engine, listener) -> the port, or -errno */
static napi_value port_of(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t index = unsigned_integer(&call, 1);
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	if (call.bad)
		return NULL;
	if (index >= LISTENERS_MAX || engine->listeners[index].fd < 0)
		return number(env, -EBADF);
	if (getsockname(engine->listeners[index].fd, (struct sockaddr *)&address, &length) < 0)
		return number(env, -errno);
	if (address.ss_family == AF_INET)
		return number(env, ntohs(((struct sockaddr_in *)&address)->sin_port));
	return number(env, ntohs(((struct sockaddr_in6 *)&address)->sin6_port));
}

/* unlisten(engine, listener) -> 0, or -EBADF. The connections of the listener stay open. */
static napi_value unlisten(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t index = unsigned_integer(&call, 1);
	if (call.bad)
		return NULL;
	if (index >= LISTENERS_MAX || engine->listeners[index].fd < 0)
		return number(env, -EBADF);
	epoll_ctl(engine->epoll, EPOLL_CTL_DEL, engine->listeners[index].fd, NULL);
	close(engine->listeners[index].fd);
	engine->listeners[index].fd = -1;
	socket_closed(engine);
	return number(env, 0);
}

/* accepting(engine, listener, on) -> 0, or -EBADF. With `on` 0, new connections wait in the kernel. */
static napi_value accepting(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t index = unsigned_integer(&call, 1), on = unsigned_integer(&call, 2);
	if (call.bad)
		return NULL;
	if (index >= LISTENERS_MAX || engine->listeners[index].fd < 0)
		return number(env, -EBADF);
	struct listener *listener = &engine->listeners[index];
	struct epoll_event event = { .events = on ? EPOLLIN : 0, .data.u64 = LISTENER_BIT | index };
	listener->off = !on;
	listener->ready = false;
	return number(env, epoll_ctl(engine->epoll, EPOLL_CTL_MOD, listener->fd, &event) < 0 ? -errno : 0);
}

/* listenerDescriptor(engine, listener) -> the descriptor, or -EBADF. The engine still owns the descriptor. */
static napi_value listener_descriptor(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t index = unsigned_integer(&call, 1);
	if (call.bad)
		return NULL;
	bool open = index < LISTENERS_MAX && engine->listeners[index].fd >= 0;
	return number(env, open ? engine->listeners[index].fd : -EBADF);
}

/* rearm(engine) -> how many parked listeners accept again */
static napi_value rearm(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t count = 0;
	if (call.bad)
		return NULL;
	for (uint32_t i = 0; i < LISTENERS_MAX; i++) {
		struct listener *listener = &engine->listeners[i];
		struct epoll_event event = { .events = listener->off ? 0 : EPOLLIN, .data.u64 = LISTENER_BIT | i };
		if (listener->fd < 0 || !listener->parked)
			continue;
		if (epoll_ctl(engine->epoll, EPOLL_CTL_MOD, listener->fd, &event) < 0)
			continue;
		listener->parked = false;
		count++;
	}
	return number(env, count);
}

#endif
