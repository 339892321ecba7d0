/* A thread applies one batch at a time. So the event loop continues while the kernel is busy, or while another process holds the
 * kernel's lock on rules. The thread wakes the loop when the kernel has applied or refused the batch. nftables.c includes this
 * file. */
#ifndef NAMEGATE_NFTABLES_WORKER_H
#define NAMEGATE_NFTABLES_WORKER_H

#include <pthread.h>

/* The loop sets SENT, and the thread sets DONE. In state SENT the fields below `state` belong to the thread. In every other state
 * they belong to the loop. */
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

/* nlWorker(fd, function) -> the worker, or -errno. The worker calls the function when a batch is done. A worker does not keep the
 * process alive. */
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

/* nlSubmit(worker, octets, size) -> 0, -ENOMEM, or -EBUSY while a batch is running or its results wait to be taken. The octets
 * are copied. */
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

/* nlTake(worker, results, wait) -> the number of results of the finished batch, -EAGAIN if no batch is finished, or the -errno
 * with which sending the batch failed. With `wait` the call waits for the running batch. */
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

/* nlEnd(worker) -> 0. Waits for the running batch. The worker never calls its function again. Call nlEnd exactly once. */
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

#endif
