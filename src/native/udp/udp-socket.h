/* This file opens sockets, or adopts sockets that another process bound. It sets the options that a listener or an upstream
 * needs, and closes sockets. */
#ifndef NAMEGATE_UDP_SOCKET_H
#define NAMEGATE_UDP_SOCKET_H

#include <linux/filter.h>

#include "udp-send.h"
#include "udp-share.h"

/* Some libcs lack this constant. */
#ifndef IPV6_HDRINCL
#define IPV6_HDRINCL 36
#endif
/* The kernel may fragment, and it ignores ICMP messages that lower the path MTU, because they can be forged (RFC 8899 4.6.1). */
#define PMTUDISC_OMIT 5

/* How JavaScript describes a new socket, in the words of an Int32Array. */
enum spec_words { SPEC_FAMILY, SPEC_FLAGS, SPEC_PORT, SPEC_PEER_PORT, SPEC_MARK, SPEC_RECEIVE_BUFFER, SPEC_SEND_BUFFER, SPEC_CHANNEL, SPEC_DESCRIPTOR, SPEC_WORDS };
/* Octets of receive buffer for datagrams that wait to be read: some 160,000 queries with their overhead. */
#define WAITING_BUFFER (64 << 20)

static bool set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/* A value above rmem_max or wmem_max needs CAP_NET_ADMIN. Without it the kernel sets the largest value that it allows. A receive
 * buffer never shrinks. The kernel reports twice the value that was set. */
static void set_buffer(int fd, int force, int plain, int value)
{
	int now = 0;
	socklen_t size = sizeof(now);
	if (plain == SO_RCVBUF && value > 1 && getsockopt(fd, SOL_SOCKET, plain, &now, &size) == 0 && now / 2 >= value)
		return;
	if (value > 0 && !set_option(fd, SOL_SOCKET, force, value))
		set_option(fd, SOL_SOCKET, plain, value);
}

/* Attaches a filter that drops every packet, so that the socket receives nothing. */
static bool refuse_all(int fd)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog program = { 1, code };
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

/* Returns 0, or the errno of the first option that could not be set. */
static int set_options(int fd, const int32_t *spec)
{
	uint32_t flags = (uint32_t)spec[SPEC_FLAGS];
	bool v4 = spec[SPEC_FAMILY] == 4;
	int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	bool fine = true;
	/* A socket that is already bound has this option already. */
	if (!v4 && !(flags & UDP_RAW) && spec[SPEC_DESCRIPTOR] <= 0)
		fine = fine && set_option(fd, level, IPV6_V6ONLY, 1);
	if (flags & UDP_TRANSPARENT)
		fine = fine && set_option(fd, level, v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT, 1);
	if (flags & UDP_REUSE_ADDRESS)
		fine = fine && set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (flags & UDP_WANT_ORIGINAL)
		fine = fine && set_option(fd, level, v4 ? IP_RECVORIGDSTADDR : IPV6_RECVORIGDSTADDR, 1);
	if (flags & UDP_LISTENER)
		fine = fine && set_option(fd, level, v4 ? IP_PKTINFO : IPV6_RECVPKTINFO, 1);
	if (flags & UDP_RAW)
		fine = fine && set_option(fd, level, v4 ? IP_HDRINCL : IPV6_HDRINCL, 1);
	if (flags & UDP_SEND_ONLY)
		fine = fine && refuse_all(fd);
	if (spec[SPEC_MARK])
		fine = fine && set_option(fd, SOL_SOCKET, SO_MARK, spec[SPEC_MARK]);
	if (!fine)
		return errno;
	set_option(fd, level, v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, PMTUDISC_OMIT);
	set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, spec[SPEC_RECEIVE_BUFFER]);
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, spec[SPEC_SEND_BUFFER]);
	return 0;
}

/* Binds and connects as the spec says. Returns 0 or an errno. */
static int place_socket(int fd, const int32_t *spec, const uint8_t *address, const uint8_t *peer)
{
	uint8_t family = (uint8_t)spec[SPEC_FAMILY];
	socklen_t size = address_length(family);
	struct sockaddr_in6 own = make_address(family, address, (uint16_t)spec[SPEC_PORT], 0);
	struct sockaddr_in6 other = make_address(family, peer, (uint16_t)spec[SPEC_PEER_PORT], 0);
	if (spec[SPEC_FLAGS] & UDP_RAW)
		return 0;
	if (bind(fd, (struct sockaddr *)&own, size) < 0)
		return errno;
	if (spec[SPEC_PEER_PORT] && connect(fd, (struct sockaddr *)&other, size) < 0)
		return errno;
	return 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 name = {};
	socklen_t size = sizeof(name);
	return getsockname(fd, (struct sockaddr *)&name, &size) == 0 ? ntohs(name.sin6_port) : 0;
}

/* A free place for a new socket, or NULL. */
static struct udp_socket *free_place(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->used; i++)
		if (engine->sockets[i].fd < 0)
			return &engine->sockets[i];
	return engine->used < SOCKETS_MAX ? &engine->sockets[engine->used++] : NULL;
}

/* socket(engine, spec, address, peer) -> the handle, or -errno. Addresses have 16 octets. With peer port 0 the socket is not
 * connected. */
static napi_value open_socket(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	int32_t *spec = octets(&call, 1, SPEC_WORDS * 4, NULL);
	uint8_t *address = octets(&call, 2, 16, NULL);
	uint8_t *peer = octets(&call, 3, 16, NULL);
	if (call.bad)
		return NULL;
	bool raw = spec[SPEC_FLAGS] & UDP_RAW, given = spec[SPEC_DESCRIPTOR] > 0;
	int fd = given ? spec[SPEC_DESCRIPTOR] - 1
		       : socket(spec[SPEC_FAMILY] == 4 ? AF_INET : AF_INET6, (raw ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK,
			raw ? IPPROTO_RAW : 0);
	if (fd < 0)
		return number(env, -errno);
	int error = set_options(fd, spec);
	if (!error && !given)
		error = place_socket(fd, spec, address, peer);
	struct udp_socket *socket = error ? NULL : free_place(engine);
	if (!socket) {
		close(fd);
		return number(env, -(error ? error : EMFILE));
	}
	uint16_t generation = (uint16_t)((socket->generation + 1) & 0x7fff);
	*socket = (struct udp_socket){
		.fd = fd,
		.generation = generation,
		.port = raw ? 0 : port_of(fd),
		.family = (uint8_t)spec[SPEC_FAMILY],
		.flags = (uint32_t)spec[SPEC_FLAGS],
		.channel = (uint32_t)spec[SPEC_CHANNEL],
		.first_row = NONE,
	};
	watch_socket(engine, socket, EPOLL_CTL_ADD);
	/* The process stays alive while a socket is open. */
	if (engine->open_sockets++ == 0)
		uv_ref((uv_handle_t *)&engine->watch->poll);
	return number(env, handle_of(engine, socket));
}

static void close_socket(struct engine *engine, struct udp_socket *socket)
{
	while (socket->first_kept)
		drop_first_kept(socket);
	/* If another process has the same socket, it would stay in the epoll set after this process closed its descriptor. */
	epoll_ctl(engine->epoll, EPOLL_CTL_DEL, socket->fd, NULL);
	close(socket->fd);
	socket->fd = -1;
	socket->ready = false;
	if (--engine->open_sockets == 0)
		uv_unref((uv_handle_t *)&engine->watch->poll);
}

#endif
