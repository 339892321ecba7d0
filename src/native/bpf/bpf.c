/* This addon is a thin layer over libbpf. It loads an object and pins its maps, and copies octets between maps and buffers. It
 * attaches programs, runs a program on a given packet, and empties the ring buffer. TypeScript decides what a key means. Every
 * call returns at once, and a negative number is an errno. File descriptors name maps, so pinned maps can be used without loading
 * an object. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../addon.h"
#include "bpf-attach.h"
#include "bpf-gather.h"
#include "bpf-load.h"
#include "bpf-maps.h"

/* openPin(path) -> fd, or -errno */
static napi_value open_pin(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	int fd = bpf_obj_get(path);
	return number(env, fd < 0 ? -errno : fd);
}

/* pin(fd of a map or a program, path) -> 0, or -errno */
static napi_value pin(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE];
	int fd = integer(&call, 0);
	text(&call, 1, path, sizeof(path));
	if (call.bad)
		return NULL;
	return number(env, bpf_obj_pin(fd, path) < 0 ? -errno : 0);
}

/* shape(fd, into: Uint32Array of 3) -> 0, or -errno. Writes the key size, the value size and the bound of a map. */
static napi_value shape(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct bpf_map_info found = {};
	__u32 size = sizeof(found);
	int fd = integer(&call, 0);
	uint32_t *into = octets(&call, 1, 3 * sizeof(uint32_t), NULL);
	if (call.bad)
		return NULL;
	if (bpf_obj_get_info_by_fd(fd, &found, &size) < 0)
		return number(env, -errno);
	into[0] = found.key_size;
	into[1] = found.value_size;
	into[2] = found.max_entries;
	return number(env, 0);
}

/* testRun(program fd, packet, interface index) -> the program's return value as unsigned, or -errno. The packet appears to arrive
 * at the interface. Index 0 runs the program without a context. */
static napi_value test_run(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct __sk_buff context = {};
	size_t size = 0;
	int program = integer(&call, 0);
	void *packet = octets(&call, 1, 1, &size);
	context.ifindex = context.ingress_ifindex = unsigned_integer(&call, 2);
	if (call.bad)
		return NULL;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = size, .repeat = 1);
	if (context.ifindex) {
		options.ctx_in = &context;
		options.ctx_size_in = sizeof(context);
	}
	int result = bpf_prog_test_run_opts(program, &options);
	return number(env, result < 0 ? (double)result : (double)options.retval);
}

struct ring {
	struct ring_buffer *buffer;
	uint8_t *into;
	size_t record;
	size_t room;
	size_t filled;
};

/* Skips a record of another size. A negative result stops libbpf after this record. libbpf counts the record as read. */
static int take_record(void *context, void *data, size_t size)
{
	struct ring *ring = context;
	if (size != ring->record)
		return 0;
	memcpy(ring->into + ring->filled * ring->record, data, size);
	ring->filled++;
	return ring->filled < ring->room ? 0 : -ENOBUFS;
}

static void close_ring(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	struct ring *ring = data;
	ring_buffer__free(ring->buffer);
	free(ring);
}

/* ringOpen(map fd, octets of a record) -> a handle, or -errno */
static napi_value ring_open(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t record = unsigned_integer(&call, 1);
	napi_value handle;
	if (call.bad)
		return NULL;
	struct ring *ring = calloc(1, sizeof(*ring));
	if (!ring)
		return number(env, -ENOMEM);
	ring->record = record;
	ring->buffer = ring_buffer__new(fd, take_record, ring, NULL);
	if (!ring->buffer) {
		int result = -errno;
		free(ring);
		return number(env, result);
	}
	napi_create_external(env, ring, close_ring, NULL, &handle);
	return handle;
}

/* ringDrain(handle, into) -> how many records were copied, or -errno. It stops when `into` is full. Never waits. */
static napi_value ring_drain(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct ring *ring = NULL;
	size_t size = 0;
	if (call.count < 1 || napi_get_value_external(env, call.values[0], (void **)&ring) != napi_ok) {
		refuse(&call, "a ring", 0);
		return NULL;
	}
	uint8_t *into = octets(&call, 1, ring->record, &size);
	if (call.bad)
		return NULL;
	ring->into = into;
	ring->room = size / ring->record;
	ring->filled = 0;
	int result = ring_buffer__consume(ring->buffer);
	return number(env, result < 0 && result != -ENOBUFS ? result : (double)ring->filled);
}

/* now() -> CLOCK_MONOTONIC in seconds, the clock of bpf_ktime_get_ns */
static napi_value now(napi_env env, napi_callback_info info)
{
	(void)info;
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return number(env, (double)time.tv_sec + (double)time.tv_nsec / 1e9);
}

/* booted() -> CLOCK_BOOTTIME in seconds, the clock of bpf_ktime_get_boot_ns */
static napi_value booted(napi_env env, napi_callback_info info)
{
	(void)info;
	struct timespec time;
	clock_gettime(CLOCK_BOOTTIME, &time);
	return number(env, (double)time.tv_sec + (double)time.tv_nsec / 1e9);
}

/* possibleCpus() -> how many values a per-CPU map has, or -errno */
static napi_value possible_cpus(napi_env env, napi_callback_info info)
{
	(void)info;
	return number(env, libbpf_num_possible_cpus());
}

NAPI_MODULE_INIT()
{
	static const struct export list[] = {
		{ "unload", unload },
		{ "lastLog", last_log },     { "raiseMemlock", raise_memlock },
		{ "load", load },            { "openPin", open_pin },
		{ "pin", pin },
		{ "close", close_fd },       { "shape", shape },
		{ "update", map_update },    { "remove", map_remove },
		{ "lookup", map_lookup },    { "slice", map_slice },
		{ "gather", gather_begin },  { "gathered", gather_end },
		{ "tcAttach", tc_attach },   { "tcDetach", tc_detach },
		{ "tcQuery", tc_query },     { "cgroupAttach", cgroup_attach },
		{ "netfilterAttach", netfilter_attach },
		{ "programId", program_id },
		{ "testRun", test_run },     { "ringOpen", ring_open },
		{ "ringDrain", ring_drain }, { "now", now },
		{ "booted", booted },        { "possibleCpus", possible_cpus }, { NULL, NULL },
	};
	libbpf_set_print(keep_log);
	export_all(env, exports, list);
	return exports;
}
