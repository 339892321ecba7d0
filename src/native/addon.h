/* These helpers of all addons read arguments and make results. They use only N-API (level 8) and C. A function that fails in the
 * kernel returns a negative errno. An argument of the wrong kind throws a TypeError. */
#ifndef NAMEGATE_ADDON_H
#define NAMEGATE_ADDON_H

#define NAPI_VERSION 8
#include <errno.h>
#include <node_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_ARGUMENTS 10

/* The arguments of one call. `bad` is set when an argument was refused. */
struct call {
	napi_env env;
	size_t count;
	napi_value values[MAX_ARGUMENTS];
	bool bad;
};

static inline struct call read_call(napi_env env, napi_callback_info info)
{
	struct call call = { .env = env, .count = MAX_ARGUMENTS };
	if (napi_get_cb_info(env, info, &call.count, call.values, NULL, NULL) != napi_ok)
		call.bad = true;
	return call;
}

static inline void refuse(struct call *call, const char *what, size_t index)
{
	char text[96];
	if (call->bad)
		return;
	call->bad = true;
	snprintf(text, sizeof(text), "Cannot call native function: argument %zu is not %s", index, what);
	napi_throw_type_error(call->env, NULL, text);
}

static inline int32_t integer(struct call *call, size_t index)
{
	int32_t value = 0;
	if (index >= call->count || napi_get_value_int32(call->env, call->values[index], &value) != napi_ok)
		refuse(call, "an integer", index);
	return value;
}

static inline uint32_t unsigned_integer(struct call *call, size_t index)
{
	uint32_t value = 0;
	if (index >= call->count || napi_get_value_uint32(call->env, call->values[index], &value) != napi_ok)
		refuse(call, "an unsigned integer", index);
	return value;
}

static inline void text(struct call *call, size_t index, char *into, size_t size)
{
	size_t length = 0;
	into[0] = 0;
	if (index >= call->count ||
	    napi_get_value_string_utf8(call->env, call->values[index], into, size, &length) != napi_ok)
		refuse(call, "a string", index);
	else if (length + 1 >= size)
		refuse(call, "a string of allowed length", index);
}

/* The octets of a typed array that has at least `least`. */
static inline void *octets(struct call *call, size_t index, size_t least, size_t *size)
{
	void *data = NULL;
	size_t length = 0;
	napi_typedarray_type type;
	static const uint8_t width[] = { 1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8 };
	if (index >= call->count || napi_get_typedarray_info(call->env, call->values[index], &type, &length, &data,
							      NULL, NULL) != napi_ok) {
		refuse(call, "a typed array", index);
		return NULL;
	}
	length *= width[type];
	if (length < least) {
		refuse(call, "a typed array that is long enough", index);
		return NULL;
	}
	if (size)
		*size = length;
	return data;
}

static inline napi_value number(napi_env env, double value)
{
	napi_value result;
	napi_create_double(env, value, &result);
	return result;
}

static inline napi_value string(napi_env env, const char *value)
{
	napi_value result;
	napi_create_string_utf8(env, value, NAPI_AUTO_LENGTH, &result);
	return result;
}

/* close(fd) -> 0, or -errno. Every addon that returns descriptors exports this function. */
static inline napi_value close_fd(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	if (call.bad)
		return NULL;
	return number(env, close(fd) < 0 ? -errno : 0);
}

struct export {
	const char *name;
	napi_callback function;
};

static inline void export_all(napi_env env, napi_value exports, const struct export *list)
{
	for (; list->name; list++) {
		napi_value function;
		napi_create_function(env, list->name, NAPI_AUTO_LENGTH, list->function, NULL, &function);
		napi_set_named_property(env, exports, list->name, function);
	}
}

#endif
