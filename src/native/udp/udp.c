/* This addon sends and receives UDP datagrams in batches. One epoll set holds all sockets, and the event loop watches the set.
 * recvmmsg writes straight into the columns that the packet path reads, and sendmmsg reads straight from them. JavaScript decides
 * what is sent where. C moves octets and reports what the kernel said. No call waits. A failed call returns a negative errno.
 *
 * Files:
 * - udp-engine.h: the state of an engine
 * - udp-share.h: the memory that JavaScript shares with the engine
 * - udp-socket.h: opening and closing of sockets
 * - udp-receive.h, udp-send.h: receiving and sending
 * - udp-raw.h: sending of whole IP packets */
#define _GNU_SOURCE
#include <linux/sock_diag.h>

#include "udp-receive.h"
#include "udp-share.h"
#include "udp-socket.h"

/* Some libcs lack this constant. */
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

/* open(turn) -> the engine, or -errno. The engine calls `turn` when a socket has datagrams to read, or can send again after it
 * was full. */
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

/* close(engine, handle) -> 0, or -EBADF if no socket has this handle. Every call with a handle returns -EBADF in that case. */
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

/* port(engine, handle) -> the local port of the socket, or -EBADF */
static napi_value port_bound(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	struct udp_socket *socket = call.bad ? NULL : socket_at(&call, engine, 1);
	if (call.bad)
		return NULL;
	return number(env, socket ? socket->port : -EBADF);
}

/* descriptor(engine, handle) -> the descriptor of the socket, or -EBADF. The engine still owns the descriptor, so the caller must
 * not close it. */
static napi_value descriptor(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	struct udp_socket *socket = call.bad ? NULL : socket_at(&call, engine, 1);
	if (call.bad)
		return NULL;
	return number(env, socket ? socket->fd : -EBADF);
}

/* reading(engine, handle, on) -> 0, or -EBADF. With `on` 0 the engine stops reading this socket, and arriving datagrams wait in
 * the kernel. */
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

/* stats(engine, handle, into: Float64Array) -> 0, or -EBADF. Writes eight numbers:
 * - received: read from the kernel
 * - sent: accepted by the kernel
 * - ignored: received, but from or to an address that allows no reply
 * - oversized: received, but cut because the cell was too short
 * - dropped: not sent
 * - errors: failed receive and send calls, not datagrams
 * - kept: waiting now, because the kernel's send buffer is full
 * - kernel drops: lost in the kernel, because the receive buffer was full */
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

/* poll(engine): finds the sockets that have datagrams to read, and sends what full sockets kept back */
static napi_value poll_sockets(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	if (!call.bad)
		find_ready(engine);
	return NULL;
}

/* receiveQueries(engine, start, room, stride, length) -> how many messages were written to the batch, from index `start` on */
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

/* receiveAnswers(engine, stride, length) -> how many answers were written. Each answer has a cell of `stride` octets and uses at
 * most `length` of them. */
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

/* flush(engine, rows): sends rows 0 to rows - 1 */
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

/* takeReports(engine) -> how many reports (handle, errno, dropped) `reports` holds. The next report is written to index 0 again. */
static napi_value take_reports(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	if (call.bad)
		return NULL;
	uint32_t count = engine->report_count;
	engine->report_count = 0;
	return number(env, count);
}

/* stop(engine): closes all sockets; the engine never calls `turn` again */
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
		{ "takeReports", take_reports },
		{ "stop", engine_stop },
		{ NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
