/* This file changes many entries of a map in one call, with an errno for each entry, and reads a map in slices. It uses batch
 * system calls where the kernel has them (hash maps since 5.6, tries since 5.13), else one call per entry. */
#ifndef NAMEGATE_BPF_MAPS_H
#define NAMEGATE_BPF_MAPS_H

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>

#include "../addon.h"

#define KERNEL_ENOTSUPP 524 /* the kernel's own number, which errno.h lacks */
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

/* Makes batch calls from `*at` on. Returns false if the remaining entries must be changed one by one. */
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
		/* An unknown call, or a call that failed before its first entry, leaves `done` unchanged. */
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

/* An interrupt refills a map without preallocation when the call leaves the kernel. So in a burst an update can fail with ENOMEM
 * although the machine has free memory. The same update then succeeds at the next try. */
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
		/* When an entry stays at ENOMEM, memory is really short, so the remaining entries are not tried again. */
		if (update && errors[i] == ENOMEM && !exhausted) {
			errors[i] = try_again(fd, keys + (size_t)i * key_size, values + (size_t)i * value_size);
			exhausted = errors[i] == ENOMEM;
		}
		failed += errors[i] != 0;
	}
	return failed;
}

/* update(fd, keys, values, count, key size, value size, errors: Int32Array) -> how many entries failed */
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

/* remove(fd, keys, count, key size, errors: Int32Array) -> how many entries failed */
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

/* lookup(fd, key, value) -> 0, or -errno. For a per-CPU map `value` has 8 octets for each possible CPU. */
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

/* Reads the next entries after a cursor. Returns their number, or -errno (-ENOSPC: `limit` is less than one bucket of the hash). */
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

/* slice(fd, cursor, keys, values, limit, key size, value size) -> the number of entries read, or -errno (-ENOSPC: `limit` is less
 * than one bucket of the hash). The cursor has CURSOR_SIZE octets, all zero before the first call. After the last entry its first
 * number is CURSOR_DONE. */
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
