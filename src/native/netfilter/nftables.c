/* Netlink sockets of netfilter for the nftables datapath: batches of messages go out, answers come back, both as octets
 * that TypeScript encodes and reads. One batch at a time can be handed to a thread of its own, so that a kernel that is
 * busy or another process that holds the kernel's lock on rules never stops the event loop; the loop is woken when the
 * batch was applied or refused. Long listings are read by another thread (nftables-reader.h). The kernel does a batch
 * within `sendmsg`, and its answers are there when that returns.
 *
 * Results are pairs of u32: the sequence number of a message, and the errno it was refused with, 0 for one that asked
 * to be acknowledged. Sequence 0 with ENOBUFS: answers were lost. Failures are negative errno values. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../watch.h"

#define ROOM 65536
#define ANSWER_SECONDS 10
/* Results that one batch can have; the rest of a batch that fails so often is not told one by one. */
#define RESULTS 1024

struct results {
	uint32_t pairs[RESULTS * 2];
	size_t count;
};

static void add_result(struct results *results, uint32_t sequence, uint32_t error)
{
	if (results->count == RESULTS)
		return;
	results->pairs[results->count * 2] = sequence;
	results->pairs[results->count++ * 2 + 1] = error;
}

static int send_all(int fd, const void *octets, size_t size)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t sent;
	do
		sent = sendto(fd, octets, size, 0, (struct sockaddr *)&kernel, sizeof(kernel));
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static ssize_t receive(int fd, void *into, size_t room, int flags)
{
	ssize_t got;
	do
		got = recv(fd, into, room, flags);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Everything that is there; a batch is done when it was sent. */
static void read_results(int fd, char *buffer, struct results *results)
{
	for (;;) {
		ssize_t got = receive(fd, buffer, ROOM, MSG_DONTWAIT);
		if (got == -ENOBUFS) {
			add_result(results, 0, ENOBUFS);
			continue;
		}
		if (got <= 0)
			return;
		int left = (int)got;
		for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left))
			if (m->nlmsg_type == NLMSG_ERROR && m->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)))
				add_result(results, m->nlmsg_seq, -((struct nlmsgerr *)NLMSG_DATA(m))->error);
	}
}

#include "nftables-reader.h"
#include "nftables-news.h"

static bool is_refused(const struct results *results)
{
	for (size_t i = 0; i < results->count; i++)
		if (results->pairs[i * 2 + 1])
			return true;
	return false;
}

/* Octets up to the end of the first batch; all where there is none. */
static size_t first_batch(const char *octets, size_t size)
{
	for (size_t at = 0; at + sizeof(struct nlmsghdr) <= size;) {
		const struct nlmsghdr *m = (const struct nlmsghdr *)(octets + at);
		if (m->nlmsg_len < sizeof(*m))
			break;
		at += NLMSG_ALIGN(m->nlmsg_len);
		if (m->nlmsg_type == NFNL_MSG_BATCH_END && at <= size)
			return at;
	}
	return size;
}

/* The kernel reads one batch of what is sent at once. What follows one that it refused is not sent. */
static int request(int fd, const char *octets, size_t size, char *buffer, struct results *results)
{
	int sent = 0;
	results->count = 0;
	/* What an earlier request left unread is nobody's. */
	while (receive(fd, buffer, ROOM, MSG_DONTWAIT) > 0)
		;
	while (size > 0 && sent == 0 && !is_refused(results)) {
		size_t one = first_batch(octets, size);
		sent = send_all(fd, octets, one);
		if (sent == 0)
			read_results(fd, buffer, results);
		octets += one;
		size -= one;
	}
	return sent;
}

/* nlOpen(buffer octets) -> fd, -errno. A batch must fit into the buffer; without the right to force it it is less. */
static napi_value nl_open(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int size = integer(&call, 0), big = size;
	struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	if (call.bad)
		return NULL;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (fd < 0)
		return number(env, -errno);
	/* The kernel gives it the number by which news of what it did are known. */
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0) {
		int result = -errno;
		close(fd);
		return number(env, result);
	}
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return number(env, fd);
}

/* nlRoom(fd) -> octets that one batch may have, -errno */
static napi_value nl_room(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0), size = 0;
	socklen_t length = sizeof(size);
	if (call.bad)
		return NULL;
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &length) < 0)
		return number(env, -errno);
	return number(env, size - 64);
}

static napi_value nl_close(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	if (call.bad)
		return NULL;
	return number(env, close(fd) < 0 ? -errno : 0);
}

static napi_value hand_over(napi_env env, const struct results *results, uint32_t *into, size_t room)
{
	size_t count = results->count < room / 8 ? results->count : room / 8;
	memcpy(into, results->pairs, count * 8);
	return number(env, (double)count);
}

/* nlRequest(fd, octets, size, results) -> how many results, -errno. Batches behind each other are applied in turn. */
static napi_value nl_request(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t size = unsigned_integer(&call, 2);
	const void *data = octets(&call, 1, size, NULL);
	size_t room;
	uint32_t *into = octets(&call, 3, 8, &room);
	if (call.bad)
		return NULL;
	char *buffer = malloc(ROOM);
	struct results *results = malloc(sizeof(*results));
	int sent = buffer && results ? request(fd, data, size, buffer, results) : -ENOMEM;
	napi_value result = sent < 0 ? number(env, sent) : hand_over(env, results, into, room);
	free(buffer);
	free(results);
	return result;
}

/* nlSend(fd, octets, size) -> 0, -errno. What comes back is read by nlReceive. */
static napi_value nl_send(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t size = unsigned_integer(&call, 2);
	const void *data = octets(&call, 1, size, NULL);
	if (call.bad)
		return NULL;
	return number(env, send_all(fd, data, size));
}

/* nlReceive(fd, into, wait) -> octets read, -EAGAIN when there is nothing, -errno */
static napi_value nl_receive(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	size_t room;
	void *into = octets(&call, 1, 1, &room);
	int wait = integer(&call, 2);
	if (call.bad)
		return NULL;
	return number(env, receive(fd, into, room, wait ? 0 : MSG_DONTWAIT));
}

/* The thread. It owns `state` by turns: the loop sets SENT, the thread DONE. Fields below are of whoever's turn it is. */
enum state { IDLE, SENT, DONE, ENDING };

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum state state;
	int fd;
	char *octets;
	size_t size;
	size_t room;
	int sent;
	struct results results;
	char buffer[ROOM];
	uv_async_t async;
	napi_env env;
	napi_ref function;
	napi_async_context context;
};

static void *worker_run(void *argument)
{
	struct worker *worker = argument;
	pthread_mutex_lock(&worker->lock);
	for (;;) {
		while (worker->state != SENT && worker->state != ENDING)
			pthread_cond_wait(&worker->changed, &worker->lock);
		if (worker->state == ENDING)
			break;
		pthread_mutex_unlock(&worker->lock);
		worker->sent = request(worker->fd, worker->octets, worker->size, worker->buffer, &worker->results);
		pthread_mutex_lock(&worker->lock);
		worker->state = DONE;
		pthread_cond_broadcast(&worker->changed);
		uv_async_send(&worker->async);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

static void worker_wake(uv_async_t *async)
{
	struct worker *worker = async->data;
	napi_env env = worker->env;
	napi_handle_scope scope;
	napi_value function, receiver, error;
	bool thrown = false;
	if (!worker->function || napi_open_handle_scope(env, &scope) != napi_ok)
		return;
	napi_get_global(env, &receiver);
	if (napi_get_reference_value(env, worker->function, &function) == napi_ok && function)
		napi_make_callback(env, worker->context, receiver, function, 0, NULL, NULL);
	if (napi_is_exception_pending(env, &thrown) == napi_ok && thrown &&
	    napi_get_and_clear_last_exception(env, &error) == napi_ok)
		napi_fatal_exception(env, error);
	napi_close_handle_scope(env, scope);
}

static void worker_free(uv_handle_t *handle)
{
	struct worker *worker = handle->data;
	pthread_mutex_destroy(&worker->lock);
	pthread_cond_destroy(&worker->changed);
	free(worker->octets);
	free(worker);
}

static struct worker *worker_of(struct call *call)
{
	void *data = NULL;
	if (call->count < 1 || napi_get_value_external(call->env, call->values[0], &data) != napi_ok)
		refuse(call, "a worker", 0);
	return data;
}

/* nlWorker(fd, function) -> worker, -errno. The function is called when a batch is done; it keeps no process alive. */
static napi_value nl_worker(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uv_loop_t *loop;
	napi_value result;
	if (call.bad)
		return NULL;
	struct worker *worker = calloc(1, sizeof(*worker));
	if (!worker)
		return number(env, -ENOMEM);
	worker->fd = fd;
	worker->env = env;
	worker->async.data = worker;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	if (napi_get_uv_event_loop(env, &loop) != napi_ok || uv_async_init(loop, &worker->async, worker_wake) < 0) {
		free(worker);
		return number(env, -EINVAL);
	}
	uv_unref((uv_handle_t *)&worker->async);
	int failed = pthread_create(&worker->thread, NULL, worker_run, worker);
	if (failed) {
		uv_close((uv_handle_t *)&worker->async, worker_free);
		return number(env, -failed);
	}
	napi_create_reference(env, call.values[1], 1, &worker->function);
	napi_async_init(env, NULL, string(env, "namegate"), &worker->context);
	napi_create_external(env, worker, NULL, NULL, &result);
	return result;
}

/* nlSubmit(worker, octets, size) -> 0, -EBUSY while a batch is under way or its results were not taken, -ENOMEM.
 * The octets are copied. */
static napi_value nl_submit(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct worker *worker = worker_of(&call);
	uint32_t size = unsigned_integer(&call, 2);
	const void *data = octets(&call, 1, size, NULL);
	int result = 0;
	if (call.bad)
		return NULL;
	pthread_mutex_lock(&worker->lock);
	if (worker->state != IDLE)
		result = -EBUSY;
	else if (size > worker->room) {
		char *more = realloc(worker->octets, size);
		if (more) {
			worker->octets = more;
			worker->room = size;
		} else
			result = -ENOMEM;
	}
	if (result == 0) {
		memcpy(worker->octets, data, size);
		worker->size = size;
		worker->state = SENT;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return number(env, result);
}

/* nlTake(worker, results, wait) -> how many results of the batch that is done, -EAGAIN when none is, -errno when it
 * could not be sent. With `wait` it returns when there is one. */
static napi_value nl_take(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct worker *worker = worker_of(&call);
	size_t room;
	uint32_t *into = octets(&call, 1, 8, &room);
	int wait = integer(&call, 2);
	napi_value result;
	if (call.bad)
		return NULL;
	pthread_mutex_lock(&worker->lock);
	while (wait && worker->state == SENT)
		pthread_cond_wait(&worker->changed, &worker->lock);
	if (worker->state != DONE)
		result = number(env, -EAGAIN);
	else {
		worker->state = IDLE;
		result = worker->sent < 0 ? number(env, worker->sent)
					  : hand_over(env, &worker->results, into, room);
	}
	pthread_mutex_unlock(&worker->lock);
	return result;
}

/* nlEnd(worker) -> 0. Waits for the batch under way; afterwards the function is not called again. Once, and only once. */
static napi_value nl_end(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct worker *worker = worker_of(&call);
	if (call.bad)
		return NULL;
	pthread_mutex_lock(&worker->lock);
	while (worker->state == SENT)
		pthread_cond_wait(&worker->changed, &worker->lock);
	worker->state = ENDING;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	napi_delete_reference(env, worker->function);
	napi_async_destroy(env, worker->context);
	worker->function = NULL;
	uv_close((uv_handle_t *)&worker->async, worker_free);
	return number(env, 0);
}

NAPI_MODULE_INIT()
{
	static const struct export list[] = {
		{ "nlOpen", nl_open },	     { "nlRoom", nl_room },	{ "nlClose", nl_close },
		{ "nlRequest", nl_request }, { "nlSend", nl_send },	{ "nlReceive", nl_receive },
		{ "nlWorker", nl_worker },   { "nlSubmit", nl_submit }, { "nlTake", nl_take },
		{ "nlEnd", nl_end },	     { "nlReader", nl_reader },	{ "nlPart", nl_part },
		{ "nlReaderEnd", nl_reader_end }, { "nlWatch", nl_watch }, { "nlNews", nl_news }, { NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
