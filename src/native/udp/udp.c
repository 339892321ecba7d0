/* UDP in batches: one epoll set with all sockets, watched by the event loop; recvmmsg straight into the columns that
 * the packet path reads, sendmmsg straight from them. JavaScript decides what is sent where; C moves octets and tells
 * what the kernel said. No call waits. Failures are negative errno values.
 * udp-engine.h: what is known; udp-share.h: what JavaScript has of it; udp-socket.h: sockets; udp-receive.h, udp-send.h,
 * udp-raw.h: the three ways. */
#define _GNU_SOURCE
#include <linux/sock_diag.h>

#include "udp-receive.h"
#include "udp-share.h"
#include "udp-socket.h"

/* Not in every libc's headers. */
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#define STATS_WORDS 8

static void engine_free(napi_env env, void *data, void *hint)
{
	struct engine *engine = data;
	(void)env;
	(void)hint;
	free(engine->sockets);
	free(engine);
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
