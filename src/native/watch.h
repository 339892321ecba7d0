/* A watch calls a JavaScript function from the event loop, once a turn, while a descriptor is readable. The watch holds that
 * function. After watch_stop the loop never calls the function again. The loop frees the watch when it has closed the handle. */
#ifndef NAMEGATE_WATCH_H
#define NAMEGATE_WATCH_H

#include <stdlib.h>
#include <uv.h>

#include "addon.h"

struct watch {
	uv_poll_t poll;
	napi_env env;
	napi_ref function;
	napi_async_context context;
};

static inline void watch_run(uv_poll_t *poll, int status, int events)
{
	struct watch *watch = poll->data;
	napi_env env = watch->env;
	napi_handle_scope scope;
	napi_value function, receiver, error;
	bool thrown = false;
	(void)events;
	/* libuv ends a watch if its descriptor has a pending error, for example a netlink socket that lost events. The watch
	 * starts again, so that the function can read the error and later events. */
	if (status < 0 && uv_poll_start(poll, UV_READABLE, watch_run) < 0)
		return;
	if (napi_open_handle_scope(env, &scope) != napi_ok)
		return;
	napi_get_global(env, &receiver);
	if (napi_get_reference_value(env, watch->function, &function) == napi_ok && function)
		napi_make_callback(env, watch->context, receiver, function, 0, NULL, NULL);
	/* An exception ends the process, as in any other callback. */
	if (napi_is_exception_pending(env, &thrown) == napi_ok && thrown &&
	    napi_get_and_clear_last_exception(env, &error) == napi_ok)
		napi_fatal_exception(env, error);
	napi_close_handle_scope(env, scope);
}

static inline void watch_free(uv_handle_t *handle)
{
	free(handle->data);
}

/* Returns NULL if the loop cannot watch the descriptor. */
static inline struct watch *watch_start(napi_env env, int fd, napi_value function)
{
	uv_loop_t *loop;
	napi_value name;
	struct watch *watch = calloc(1, sizeof(*watch));
	if (!watch)
		return NULL;
	watch->env = env;
	watch->poll.data = watch;
	if (napi_get_uv_event_loop(env, &loop) != napi_ok || uv_poll_init(loop, &watch->poll, fd) < 0) {
		free(watch);
		return NULL;
	}
	name = string(env, "namegate");
	napi_create_reference(env, function, 1, &watch->function);
	napi_async_init(env, NULL, name, &watch->context);
	if (uv_poll_start(&watch->poll, UV_READABLE, watch_run) < 0) {
		uv_close((uv_handle_t *)&watch->poll, watch_free);
		return NULL;
	}
	return watch;
}

/* The caller can close the descriptor afterwards. The watch's own function can call watch_stop. */
static inline void watch_stop(struct watch *watch)
{
	uv_poll_stop(&watch->poll);
	napi_delete_reference(watch->env, watch->function);
	napi_async_destroy(watch->env, watch->context);
	watch->function = NULL;
	uv_close((uv_handle_t *)&watch->poll, watch_free);
}

#endif
