/* Maps: many entries in one call, each with its own errno; a whole map in slices. Batch system calls where
 * the kernel has them (hash maps 5.6, tries 5.13), else one call an entry. */
#ifndef NAMEGATE_BPF_MAPS_H
#define NAMEGATE_BPF_MAPS_H

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>

#include "../addon.h"

#define KERNEL_ENOTSUPP 524 /* of the kernel's own; not in errno.h */
#define MAX_KEY 64
#define MEMORY_TRIES 5

#define CURSOR_START 0
#define CURSOR_BATCH 1
#define CURSOR_KEYS 2
#define CURSOR_DONE 3
#define CURSOR_SIZE (4 + MAX_KEY)

static inline bool lacks_batch(int error)
{
	return error == EINVAL || error == EOPNOTSUPP || error == KERNEL_ENOTSUPP || error == ENOSYS;
}

/* Batch calls from `*at` on. False: the rest must be done one by one. */
static inline bool try_batch(int fd, bool update, const uint8_t *keys, const uint8_t *values, uint32_t count,
			     uint32_t key_size, uint32_t value_size, int32_t *errors, uint32_t *at)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	while (*at < count) {
		__u32 done = count - *at;
		int result = update ? bpf_map_update_batch(fd, keys + (size_t)*at * key_size,
							   values + (size_t)*at * value_size, &done, &options) :
				      bpf_map_delete_batch(fd, keys + (size_t)*at * key_size, &done, &options);
		int error = result < 0 ? errno : 0;
		/* A call that is unknown, or that failed before its first entry, leaves `done` as it was. */
		if (error && (done == count - *at || (done == 0 && lacks_batch(error))))
			return false;
		*at += done;
		if (!error)
			continue;
		if (*at >= count)
			return true;
		errors[(*at)++] = error;
	}
	return true;
}

/* A map without preallocation is refilled by an interrupt on the way out of the kernel: in a burst, an
 * update can fail with ENOMEM on a machine full of memory, and succeed at once when tried again. */
static inline int32_t try_again(int fd, const uint8_t *key, const uint8_t *value)
{
	for (int i = 0; i < MEMORY_TRIES; i++) {
		if (bpf_map_update_elem(fd, key, value, BPF_ANY) == 0)
			return 0;
		if (errno != ENOMEM)
			return errno;
		sched_yield();
	}
	return ENOMEM;
}

static inline uint32_t change_map(int fd, bool update, const uint8_t *keys, const uint8_t *values, uint32_t count,
				  uint32_t key_size, uint32_t value_size, int32_t *errors)
{
	uint32_t at = 0, failed = 0;
	bool exhausted = false;
	memset(errors, 0, (size_t)count * sizeof(*errors));
	if (count < 2 || !try_batch(fd, update, keys, values, count, key_size, value_size, errors, &at)) {
		for (; at < count; at++) {
			const uint8_t *key = keys + (size_t)at * key_size;
			int result = update ? bpf_map_update_elem(fd, key, values + (size_t)at * value_size, BPF_ANY) :
					      bpf_map_delete_elem(fd, key);
			errors[at] = result < 0 ? errno : 0;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		/* Once memory is really short, the others are not worth the wait. */
		if (update && errors[i] == ENOMEM && !exhausted) {
			errors[i] = try_again(fd, keys + (size_t)i * key_size, values + (size_t)i * value_size);
			exhausted = errors[i] == ENOMEM;
		}
		failed += errors[i] != 0;
	}
	return failed;
}

/* update(fd, keys, values, count, key size, value size, errors: Int32Array) -> how many failed */
static napi_value map_update(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t count = unsigned_integer(&call, 3);
	uint32_t key_size = unsigned_integer(&call, 4);
	uint32_t value_size = unsigned_integer(&call, 5);
	uint8_t *keys = octets(&call, 1, (size_t)count * key_size, NULL);
	uint8_t *values = octets(&call, 2, (size_t)count * value_size, NULL);
	int32_t *errors = octets(&call, 6, (size_t)count * sizeof(int32_t), NULL);
	if (call.bad)
		return NULL;
	return number(env, change_map(fd, true, keys, values, count, key_size, value_size, errors));
}

/* remove(fd, keys, count, key size, errors: Int32Array) -> how many failed */
static napi_value map_remove(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t count = unsigned_integer(&call, 2);
	uint32_t key_size = unsigned_integer(&call, 3);
	uint8_t *keys = octets(&call, 1, (size_t)count * key_size, NULL);
	int32_t *errors = octets(&call, 4, (size_t)count * sizeof(int32_t), NULL);
	if (call.bad)
		return NULL;
	return number(env, change_map(fd, false, keys, NULL, count, key_size, 0, errors));
}

/* lookup(fd, key, value) -> 0, -errno. Of a per-CPU map `value` takes 8 octets a possible CPU. */
static napi_value map_lookup(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint8_t *key = octets(&call, 1, 1, NULL);
	uint8_t *value = octets(&call, 2, 1, NULL);
	if (call.bad)
		return NULL;
	return number(env, bpf_map_lookup_elem(fd, key, value) < 0 ? -errno : 0);
}

static inline int slice_by_batch(int fd, uint8_t *cursor, uint8_t *keys, uint8_t *values, uint32_t limit)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	uint32_t *state = (uint32_t *)cursor;
	uint8_t next[MAX_KEY] = {};
	__u32 count = limit;
	int result = bpf_map_lookup_batch(fd, *state == CURSOR_START ? NULL : cursor + 4, next, keys, values, &count,
					  &options);
	int error = result < 0 ? errno : 0;
	if (error == ENOENT) {
		*state = CURSOR_DONE;
		return (int)count;
	}
	if (error)
		return -error;
	*state = CURSOR_BATCH;
	memcpy(cursor + 4, next, MAX_KEY);
	return (int)count;
}

static inline int slice_by_keys(int fd, uint8_t *cursor, uint8_t *keys, uint8_t *values, uint32_t limit,
				uint32_t key_size, uint32_t value_size)
{
	uint32_t *state = (uint32_t *)cursor;
	uint32_t count = 0;
	while (count < limit) {
		uint8_t next[MAX_KEY] = {};
		if (bpf_map_get_next_key(fd, *state == CURSOR_START ? NULL : cursor + 4, next) < 0) {
			if (errno != ENOENT)
				return -errno;
			*state = CURSOR_DONE;
			return (int)count;
		}
		*state = CURSOR_KEYS;
		memcpy(cursor + 4, next, MAX_KEY);
		memcpy(keys + (size_t)count * key_size, next, key_size);
		if (bpf_map_lookup_elem(fd, next, values + (size_t)count * value_size) == 0)
			count++;
	}
	return (int)count;
}

/* Reads on from a cursor: entries read, -errno (-ENOSPC: `limit` is less than one bucket of the hash). */
static inline int read_slice(int fd, uint8_t *cursor, uint8_t *keys, uint8_t *values, uint32_t limit,
			     uint32_t key_size, uint32_t value_size)
{
	uint32_t state = *(uint32_t *)cursor;
	int result = state == CURSOR_DONE ? 0 : -EINVAL;
	if (state == CURSOR_START || state == CURSOR_BATCH)
		result = slice_by_batch(fd, cursor, keys, values, limit);
	if (state == CURSOR_KEYS || (state == CURSOR_START && result < 0 && lacks_batch(-result)))
		result = slice_by_keys(fd, cursor, keys, values, limit, key_size, value_size);
	return result;
}

/* slice(fd, cursor, keys, values, limit, key size, value size) -> entries read, -errno (-ENOSPC: `limit` is
 * less than one bucket of the hash). The cursor is CURSOR_SIZE octets, all zero before the first call; its
 * first number is CURSOR_DONE behind the last. */
static napi_value map_slice(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t limit = unsigned_integer(&call, 4);
	uint32_t key_size = unsigned_integer(&call, 5);
	uint32_t value_size = unsigned_integer(&call, 6);
	uint8_t *cursor = octets(&call, 1, CURSOR_SIZE, NULL);
	uint8_t *keys = octets(&call, 2, (size_t)limit * key_size, NULL);
	uint8_t *values = octets(&call, 3, (size_t)limit * value_size, NULL);
	if (call.bad || key_size > MAX_KEY)
		return NULL;
	return number(env, read_slice(fd, cursor, keys, values, limit, key_size, value_size));
}

#endif
