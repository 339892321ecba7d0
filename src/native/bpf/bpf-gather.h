/* This file reads a whole map in a thread while the caller does something else. When a daemon starts, reading a million entries
 * from the kernel takes as long as reading the files about them. No process may write the map during the read. The thread uses
 * only its own struct. `gathered` waits for the thread and returns the thread's buffers. */
#ifndef NAMEGATE_BPF_GATHER_H
#define NAMEGATE_BPF_GATHER_H

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "bpf-maps.h"

#define GATHER_SLICE 4096
#define GATHER_ROOM 65536

struct gather {
	pthread_t thread;
	bool joined;
	int fd;
	uint32_t key_size, value_size;
	size_t count, room;
	uint8_t *keys, *values;
	/* The negative errno that ended the read early, or 0. */
	int failed;
};

/* Growing only reserves address space. Pages without entries cost no memory. */
static inline bool gather_grow(struct gather *gather)
{
	size_t room = gather->room ? gather->room * 2 : GATHER_ROOM;
	uint8_t *keys = realloc(gather->keys, room * gather->key_size);
	if (keys)
		gather->keys = keys;
	uint8_t *values = realloc(gather->values, room * gather->value_size);
	if (values)
		gather->values = values;
	if (!keys || !values)
		return false;
	gather->room = room;
	return true;
}

static inline void *gather_run(void *data)
{
	struct gather *gather = data;
	uint8_t cursor[CURSOR_SIZE] __attribute__((aligned(4))) = {};
	while (*(uint32_t *)cursor != CURSOR_DONE) {
		if (gather->room - gather->count < GATHER_SLICE && !gather_grow(gather)) {
			gather->failed = -ENOMEM;
			break;
		}
		int found = read_slice(gather->fd, cursor, gather->keys + gather->count * gather->key_size,
				       gather->values + gather->count * gather->value_size, GATHER_SLICE,
				       gather->key_size, gather->value_size);
		if (found < 0) {
			gather->failed = found;
			break;
		}
		gather->count += found;
	}
	return NULL;
}

static inline void gather_join(struct gather *gather)
{
	if (!gather->joined)
		pthread_join(gather->thread, NULL);
	gather->joined = true;
}

static inline void free_gather(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	struct gather *gather = data;
	gather_join(gather);
	free(gather->keys);
	free(gather->values);
	free(gather);
}

static inline void free_octets(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	free(data);
}

/* Returns the octets without a copy. */
static inline napi_value hand_out(napi_env env, uint8_t **octets, size_t size)
{
	napi_value result;
	void *unused;
	if (size == 0) {
		napi_create_arraybuffer(env, 0, &unused, &result);
		return result;
	}
	napi_create_external_arraybuffer(env, *octets, size, free_octets, NULL, &result);
	*octets = NULL;
	return result;
}

/* gather(fd, key size, value size) -> a handle, or -errno. `fd` must stay open until `gathered`. The thread blocks all signals,
 * so the main thread receives them. */
static napi_value gather_begin(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t key_size = unsigned_integer(&call, 1);
	uint32_t value_size = unsigned_integer(&call, 2);
	napi_value result;
	sigset_t all, before;
	if (call.bad || key_size > MAX_KEY)
		return NULL;
	struct gather *gather = calloc(1, sizeof(*gather));
	if (!gather)
		return number(env, -ENOMEM);
	gather->fd = fd;
	gather->key_size = key_size;
	gather->value_size = value_size;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&gather->thread, NULL, gather_run, gather);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed) {
		free(gather);
		return number(env, -failed);
	}
	napi_create_external(env, gather, free_gather, NULL, &result);
	return result;
}

/* gathered(handle) -> [keys, values] as buffers of their own, or -errno. Call gathered exactly once. */
static napi_value gather_end(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct gather *gather = NULL;
	napi_value result;
	if (call.count < 1 || napi_get_value_external(env, call.values[0], (void **)&gather) != napi_ok) {
		refuse(&call, "what gather gave", 0);
		return NULL;
	}
	gather_join(gather);
	if (gather->failed)
		return number(env, gather->failed);
	if (!gather->keys)
		return number(env, -EINVAL);
	napi_create_array_with_length(env, 2, &result);
	napi_set_element(env, result, 0, hand_out(env, &gather->keys, gather->count * gather->key_size));
	napi_set_element(env, result, 1, hand_out(env, &gather->values, gather->count * gather->value_size));
	return result;
}

#endif
