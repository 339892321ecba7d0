/* UDP in batches: one epoll set with all sockets, watched by the event loop; recvmmsg straight into the columns that
 * the packet path reads, sendmmsg straight from them. JavaScript decides what is sent where; C moves octets and tells
 * what the kernel said. No call waits. Failures are negative errno values.
 * udp-engine.h: what is known; udp-receive.h, udp-send.h, udp-raw.h: the three ways. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <stddef.h>

#include "udp-receive.h"

/* Not in every libc's headers. */
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif
#ifndef IPV6_HDRINCL
#define IPV6_HDRINCL 36
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
/* Fragments may be made, and no ICMP message shrinks what we believe of the way (RFC 8899 4.6.1 on forged ones). */
#define PMTUDISC_OMIT 5

/* What JavaScript tells of a new socket; words of an Int32Array. */
enum spec_words { SPEC_FAMILY, SPEC_FLAGS, SPEC_PORT, SPEC_PEER_PORT, SPEC_MARK, SPEC_RECEIVE_BUFFER, SPEC_SEND_BUFFER, SPEC_CHANNEL, SPEC_DESCRIPTOR, SPEC_WORDS };
#define STATS_WORDS 8
/* Octets asked of the kernel for what comes while nobody reads: some 160,000 queries with their overhead. */
#define WAITING_BUFFER (64 << 20)

static void engine_free(napi_env env, void *data, void *hint)
{
	struct engine *engine = data;
	(void)env;
	(void)hint;
	free(engine->sockets);
	free(engine);
}

/* The engine that a call is about, NULL and an exception when it isn't one or was stopped. */
static struct engine *engine_at(struct call *call)
{
	void *data = NULL;
	if (call->count == 0 || napi_get_value_external(call->env, call->values[0], &data) != napi_ok || !data ||
	    !((struct engine *)data)->watch) {
		refuse(call, "an engine that runs", 0);
		return NULL;
	}
	return data;
}

/* open(turn) -> engine, -errno. `turn` is called when a socket has something to read or room again. */
static napi_value engine_open(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	napi_value result;
	struct engine *engine = calloc(1, sizeof(*engine));
	if (!engine || !(engine->sockets = calloc(SOCKETS_MAX, sizeof(*engine->sockets)))) {
		free(engine);
		return number(env, -ENOMEM);
	}
	engine->env = env;
	engine->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (engine->epoll >= 0 && call.count > 0)
		engine->watch = watch_start(env, engine->epoll, call.values[0]);
	if (!engine->watch) {
		int error = engine->epoll < 0 ? errno : EINVAL;
		if (engine->epoll >= 0)
			close(engine->epoll);
		engine_free(env, engine, NULL);
		return number(env, -error);
	}
	uv_unref((uv_handle_t *)&engine->watch->poll);
	napi_create_external(env, engine, engine_free, NULL, &result);
	return result;
}

/* A typed array of a list: its octets, at least `least`; the engine keeps it from the collector. */
static uint8_t *shared(struct call *call, struct engine *engine, napi_value list, uint32_t index, size_t least, size_t *size)
{
	struct call one = { .env = call->env, .count = 1 };
	if (call->bad || engine->reference_count == REFERENCES_MAX ||
	    napi_get_element(call->env, list, index, &one.values[0]) != napi_ok) {
		refuse(call, "a list of typed arrays", 2);
		return NULL;
	}
	uint8_t *result = octets(&one, 0, least, size);
	if (one.bad) {
		call->bad = true;
		return NULL;
	}
	if (napi_create_reference(call->env, one.values[0], 1, &engine->references[engine->reference_count]) == napi_ok)
		engine->reference_count++;
	return result;
}

/* shareArea(engine, index, [octets]): octets that rows may send and that cells lie in. */
static napi_value share_area(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	uint32_t index = unsigned_integer(&call, 1);
	if (call.bad || index >= AREAS_MAX || call.count < 3) {
		refuse(&call, "an area", 1);
		return NULL;
	}
	size_t size = 0;
	uint8_t *data = shared(&call, engine, call.values[2], 0, 0, &size);
	if (!call.bad)
		engine->areas[index] = (struct area){ data, size };
	return NULL;
}

/* shareClients(engine, index, [families, addresses, ports, transports, channels, interfaces, askedAddresses, askedPorts]) */
static napi_value share_clients(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	uint32_t index = unsigned_integer(&call, 1);
	struct clients c = {};
	size_t rows = 0;
	if (call.bad || index >= CLIENTS_MAX || call.count < 3) {
		refuse(&call, "clients", 1);
		return NULL;
	}
	napi_value list = call.values[2];
	c.families = shared(&call, engine, list, 0, 1, &rows);
	c.addresses = shared(&call, engine, list, 1, rows * 16, NULL);
	c.ports = (uint16_t *)shared(&call, engine, list, 2, rows * 2, NULL);
	c.transports = shared(&call, engine, list, 3, rows, NULL);
	c.channels = (uint32_t *)shared(&call, engine, list, 4, rows * 4, NULL);
	c.interfaces = (uint32_t *)shared(&call, engine, list, 5, rows * 4, NULL);
	c.asked_addresses = shared(&call, engine, list, 6, rows * 16, NULL);
	c.asked_ports = (uint16_t *)shared(&call, engine, list, 7, rows * 2, NULL);
	c.rows = (uint32_t)rows;
	if (!call.bad)
		engine->clients[index] = c;
	return NULL;
}

/* shareQueries(engine, 0, [offsets, lengths, oversized]): the rest of the batch that clients 0 and area 0 belong to */
static napi_value share_queries(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	if (call.bad || call.count < 3)
		return NULL;
	uint32_t rows = engine->clients[0].rows;
	uint32_t *offsets = (uint32_t *)shared(&call, engine, call.values[2], 0, rows * 4, NULL);
	uint32_t *lengths = (uint32_t *)shared(&call, engine, call.values[2], 1, rows * 4, NULL);
	uint8_t *oversized = shared(&call, engine, call.values[2], 2, rows, NULL);
	if (call.bad)
		return NULL;
	engine->query_offsets = offsets;
	engine->query_lengths = lengths;
	engine->query_oversized = oversized;
	return NULL;
}

/* shareAnswers(engine, 0, [handles, offsets, lengths]): where answers are told of; their octets are in area 1 */
static napi_value share_answers(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	size_t size = 0;
	if (call.bad || call.count < 3)
		return NULL;
	uint32_t *handles = (uint32_t *)shared(&call, engine, call.values[2], 0, 4, &size);
	uint32_t *offsets = (uint32_t *)shared(&call, engine, call.values[2], 1, size, NULL);
	uint32_t *lengths = (uint32_t *)shared(&call, engine, call.values[2], 2, size, NULL);
	if (call.bad)
		return NULL;
	engine->answer_handles = handles;
	engine->answer_offsets = offsets;
	engine->answer_lengths = lengths;
	engine->answer_room = (uint32_t)(size / 4);
	return NULL;
}

/* shareSends(engine, 0, [rows, news]): what `flush` sends, and what `takeNews` tells */
static napi_value share_sends(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	size_t size = 0;
	if (call.bad || call.count < 3)
		return NULL;
	uint32_t *rows = (uint32_t *)shared(&call, engine, call.values[2], 0, ROW_WORDS * 4, &size);
	int32_t *news = (int32_t *)shared(&call, engine, call.values[2], 1, NEWS_MAX * 12, NULL);
	if (call.bad)
		return NULL;
	size /= ROW_WORDS * 4;
	engine->rows = rows;
	engine->row_room = (uint32_t)(size < ROWS_MAX ? size : ROWS_MAX);
	engine->news = news;
	return NULL;
}

static bool set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/* More than rmem_max or wmem_max needs CAP_NET_ADMIN; without it the kernel gives what it may. Nobody's buffer shrinks:
 * the kernel says twice what was asked of it. */
static void set_buffer(int fd, int force, int plain, int value)
{
	int now = 0;
	socklen_t size = sizeof(now);
	if (plain == SO_RCVBUF && value > 1 && getsockopt(fd, SOL_SOCKET, plain, &now, &size) == 0 && now / 2 >= value)
		return;
	if (value > 0 && !set_option(fd, SOL_SOCKET, force, value))
		set_option(fd, SOL_SOCKET, plain, value);
}

/* Takes nothing in: a filter that accepts no octet of any packet. */
static bool refuse_all(int fd)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog program = { 1, code };
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

/* 0, or the errno of the first option that could not be set. */
static int set_options(int fd, const int32_t *spec)
{
	uint32_t flags = (uint32_t)spec[SPEC_FLAGS];
	bool v4 = spec[SPEC_FAMILY] == 4;
	int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	bool fine = true;
	/* One that is bound was made so. */
	if (!v4 && !(flags & UDP_RAW) && spec[SPEC_DESCRIPTOR] <= 0)
		fine = fine && set_option(fd, level, IPV6_V6ONLY, 1);
	if (flags & UDP_TRANSPARENT)
		fine = fine && set_option(fd, level, v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT, 1);
	if (flags & UDP_FREEBIND)
		fine = fine && set_option(fd, level, v4 ? IP_FREEBIND : IPV6_FREEBIND, 1);
	if (flags & UDP_REUSE_ADDRESS)
		fine = fine && set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (flags & UDP_REUSE_PORT)
		fine = fine && set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
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

/* Binds and connects as the spec says; 0 or an errno. */
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

/* The place for a new socket, or NULL. */
static struct udp_socket *free_place(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->used; i++)
		if (engine->sockets[i].fd < 0)
			return &engine->sockets[i];
	return engine->used < SOCKETS_MAX ? &engine->sockets[engine->used++] : NULL;
}

/* socket(engine, spec, address, peer) -> handle, -errno. Addresses are 16 octets; peer port 0: not connected. */
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
	/* The process lives while a socket is open. */
	if (engine->open_sockets++ == 0)
		uv_ref((uv_handle_t *)&engine->watch->poll);
	return number(env, handle_of(engine, socket));
}

static void close_socket(struct engine *engine, struct udp_socket *socket)
{
	while (socket->first_kept)
		drop_first_kept(socket);
	/* Another process may have the same socket, and then it stays in the set after we have closed ours. */
	epoll_ctl(engine->epoll, EPOLL_CTL_DEL, socket->fd, NULL);
	close(socket->fd);
	socket->fd = -1;
	socket->ready = false;
	if (--engine->open_sockets == 0)
		uv_unref((uv_handle_t *)&engine->watch->poll);
}

static struct udp_socket *socket_at(struct call *call, struct engine *engine, size_t index)
{
	uint32_t handle = unsigned_integer(call, index);
	return call->bad ? NULL : socket_of(engine, handle);
}

/* close(engine, handle) -> 0, -EBADF */
static napi_value close_handle(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	struct udp_socket *socket = call.bad ? NULL : socket_at(&call, engine, 1);
	if (call.bad)
		return NULL;
	if (socket)
		close_socket(engine, socket);
	return number(env, socket ? 0 : -EBADF);
}

/* port(engine, handle) -> the port bound, -EBADF */
static napi_value port_bound(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	struct udp_socket *socket = call.bad ? NULL : socket_at(&call, engine, 1);
	if (call.bad)
		return NULL;
	return number(env, socket ? socket->port : -EBADF);
}

/* descriptor(engine, handle) -> the descriptor, which stays the engine's, -EBADF */
static napi_value descriptor(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	struct udp_socket *socket = call.bad ? NULL : socket_at(&call, engine, 1);
	if (call.bad)
		return NULL;
	return number(env, socket ? socket->fd : -EBADF);
}

/* reading(engine, handle, on) -> 0, -EBADF: off, what comes stays in the kernel */
static napi_value reading(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	struct udp_socket *socket = call.bad ? NULL : socket_at(&call, engine, 1);
	uint32_t on = unsigned_integer(&call, 2);
	if (call.bad)
		return NULL;
	if (!socket)
		return number(env, -EBADF);
	if (!on)
		set_buffer(socket->fd, SO_RCVBUFFORCE, SO_RCVBUF, WAITING_BUFFER);
	socket->quiet = !on;
	socket->ready = false;
	watch_socket(engine, socket, EPOLL_CTL_MOD);
	return number(env, 0);
}

/* stats(engine, handle, into: Float64Array) -> 0, -EBADF: received, sent, ignored, oversized, dropped, errors, kept, kernel drops */
static napi_value stats(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	struct udp_socket *socket = call.bad ? NULL : socket_at(&call, engine, 1);
	double *into = octets(&call, 2, STATS_WORDS * 8, NULL);
	uint32_t memory[SK_MEMINFO_VARS] = {};
	socklen_t size = sizeof(memory);
	if (call.bad)
		return NULL;
	if (!socket)
		return number(env, -EBADF);
	getsockopt(socket->fd, SOL_SOCKET, SO_MEMINFO, memory, &size);
	into[0] = (double)socket->received;
	into[1] = (double)socket->sent;
	into[2] = (double)socket->ignored;
	into[3] = (double)socket->oversized;
	into[4] = (double)socket->dropped;
	into[5] = (double)socket->errors;
	into[6] = socket->kept;
	into[7] = memory[SK_MEMINFO_DROPS];
	return number(env, 0);
}

/* poll(engine): looks which sockets have something */
static napi_value poll_sockets(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	if (!call.bad)
		find_ready(engine);
	return NULL;
}

/* receiveQueries(engine, start, room, stride, length) -> entries filled from `start` on */
static napi_value receive_queries_call(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	uint32_t start = unsigned_integer(&call, 1), room = unsigned_integer(&call, 2);
	uint32_t stride = unsigned_integer(&call, 3), length = unsigned_integer(&call, 4);
	if (call.bad)
		return NULL;
	uint64_t end = (uint64_t)start + room;
	if (!engine->query_offsets || end > engine->clients[0].rows || length > stride || end * stride > engine->areas[0].size) {
		refuse(&call, "a place in the batch", 2);
		return NULL;
	}
	return number(env, receive_queries(engine, start, room, stride, length));
}

/* receiveAnswers(engine, stride, length) -> entries filled; a message has its cell of `stride`, `length` of it used */
static napi_value receive_answers_call(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	uint32_t stride = unsigned_integer(&call, 1), length = unsigned_integer(&call, 2);
	if (call.bad)
		return NULL;
	if (length > stride || (uint64_t)engine->answer_room * stride > engine->areas[1].size) {
		refuse(&call, "a cell", 1);
		return NULL;
	}
	return number(env, receive_answers(engine, stride, length));
}

/* flush(engine, rows): sends */
static napi_value flush_rows(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	uint32_t count = unsigned_integer(&call, 1);
	if (call.bad)
		return NULL;
	if (count > engine->row_room) {
		refuse(&call, "a number of rows", 1);
		return NULL;
	}
	send_rows(engine, count);
	return NULL;
}

/* takeNews(engine) -> how many (handle, errno, dropped) stand in `news`; it counts from none again */
static napi_value take_news(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	if (call.bad)
		return NULL;
	uint32_t count = engine->news_count;
	engine->news_count = 0;
	return number(env, count);
}

/* stop(engine): closes all sockets; `turn` is not called any more */
static napi_value engine_stop(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	if (call.bad)
		return NULL;
	for (uint32_t i = 0; i < engine->used; i++)
		if (engine->sockets[i].fd >= 0)
			close_socket(engine, &engine->sockets[i]);
	watch_stop(engine->watch);
	engine->watch = NULL;
	close(engine->epoll);
	engine->epoll = -1;
	for (uint32_t i = 0; i < engine->reference_count; i++)
		napi_delete_reference(env, engine->references[i]);
	return NULL;
}

NAPI_MODULE_INIT()
{
	static const struct export list[] = {
		{ "open", engine_open },
		{ "shareArea", share_area },
		{ "shareClients", share_clients },
		{ "shareQueries", share_queries },
		{ "shareAnswers", share_answers },
		{ "shareSends", share_sends },
		{ "socket", open_socket },
		{ "close", close_handle },
		{ "port", port_bound },
		{ "descriptor", descriptor },
		{ "reading", reading },
		{ "stats", stats },
		{ "poll", poll_sockets },
		{ "receiveQueries", receive_queries_call },
		{ "receiveAnswers", receive_answers_call },
		{ "flush", flush_rows },
		{ "takeNews", take_news },
		{ "stop", engine_stop },
		{ NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
