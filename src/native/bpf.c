/* A thin face of libbpf: loads an object with its maps pinned, moves octets between maps and buffers,
 * attaches programs, runs one on a given packet, empties the ring buffer. TypeScript decides; nothing here
 * knows what a key means. Calls return at once; a negative number is an errno. Maps are named by file
 * descriptor, so that pins can be used without loading anything. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "addon.h"
#include "bpf-gather.h"
#include "bpf-maps.h"

#define PATH_SIZE 4096
#define LOG_SIZE 16384

/* The newest lines that libbpf wrote, for error messages. */
static char log_text[LOG_SIZE];
static size_t log_length;

static int keep_log(enum libbpf_print_level level, const char *format, va_list arguments)
{
	char line[2048];
	if (level == LIBBPF_DEBUG)
		return 0;
	int length = vsnprintf(line, sizeof(line), format, arguments);
	if (length < 0)
		return 0;
	if ((size_t)length >= sizeof(line))
		length = sizeof(line) - 1;
	if (log_length + length >= LOG_SIZE) {
		size_t drop = log_length / 2;
		memmove(log_text, log_text + drop, log_length - drop);
		log_length -= drop;
	}
	memcpy(log_text + log_length, line, length);
	log_length += length;
	log_text[log_length] = 0;
	return 0;
}

/* lastLog() -> what libbpf said since the last load */
static napi_value last_log(napi_env env, napi_callback_info info)
{
	(void)info;
	return string(env, log_text);
}

/* raiseMemlock() -> 0, -errno. Kernels before 5.11 charge maps to RLIMIT_MEMLOCK. */
static napi_value raise_memlock(napi_env env, napi_callback_info info)
{
	(void)info;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	return number(env, setrlimit(RLIMIT_MEMLOCK, &limit) < 0 ? -errno : 0);
}

/* What a handle holds; the object is closed by unload() or with the handle. */
struct loaded {
	struct bpf_object *object;
};

static void free_loaded(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	struct loaded *loaded = data;
	bpf_object__close(loaded->object);
	free(loaded);
}

/* unload(handle) -> 0. Closes the descriptors; what is pinned or attached stays. */
static napi_value unload(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct loaded *loaded = NULL;
	if (call.count < 1 || napi_get_value_external(env, call.values[0], (void **)&loaded) != napi_ok) {
		refuse(&call, "a loaded object", 0);
		return NULL;
	}
	bpf_object__close(loaded->object);
	loaded->object = NULL;
	return number(env, 0);
}

/* Takes the pinned map of that name, when there is one with the same shape; its size wins over ours. */
static int adopt_pin(struct bpf_map *map, const char *path)
{
	struct bpf_map_info found = {};
	__u32 size = sizeof(found);
	int fd = bpf_obj_get(path);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	int result = bpf_obj_get_info_by_fd(fd, &found, &size) < 0 ? -errno : 0;
	if (result == 0 && (found.type != bpf_map__type(map) || found.key_size != bpf_map__key_size(map) ||
			    found.value_size != bpf_map__value_size(map)))
		result = -EMEDIUMTYPE;
	if (result == 0)
		result = bpf_map__set_max_entries(map, found.max_entries);
	if (result == 0)
		result = bpf_map__reuse_fd(map, fd);
	close(fd);
	return result;
}

static int prepare_maps(struct bpf_object *object, const char *directory, struct call *call, size_t sizes)
{
	struct bpf_map *map;
	char path[PATH_SIZE + 64];
	bpf_object__for_each_map(map, object) {
		const char *name = bpf_map__name(map);
		napi_value wanted;
		uint32_t entries = 0;
		if (bpf_map__is_internal(map))
			continue;
		if (napi_get_named_property(call->env, call->values[sizes], name, &wanted) == napi_ok &&
		    napi_get_value_uint32(call->env, wanted, &entries) == napi_ok)
			bpf_map__set_max_entries(map, entries);
		snprintf(path, sizeof(path), "%s/%s", directory, name);
		int result = adopt_pin(map, path);
		if (result == 0)
			result = bpf_map__set_pin_path(map, path);
		if (result < 0) {
			snprintf(log_text, LOG_SIZE, "map %s", path);
			return result;
		}
	}
	return 0;
}

/* For libbpf older than 1.3, which does not know the section. */
#define PROGRAM_NETFILTER 32
#define ATTACH_NETFILTER 45

static void name_types(struct bpf_object *object)
{
	struct bpf_program *program;
	bpf_object__for_each_program(program, object) {
		if (strcmp(bpf_program__section_name(program), "netfilter") != 0)
			continue;
		bpf_program__set_type(program, PROGRAM_NETFILTER);
		bpf_program__set_expected_attach_type(program, ATTACH_NETFILTER);
	}
}

/* load(object file, pin directory, { map: entries }) -> { handle, maps: { name: fd }, programs: { name: fd } },
 * -errno; lastLog() says more. The descriptors live as long as the handle. */
static napi_value load(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE], directory[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	text(&call, 1, directory, sizeof(directory));
	if (call.bad)
		return NULL;
	log_length = 0;
	log_text[0] = 0;
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	if (!object)
		return number(env, -errno);
	name_types(object);
	int result = prepare_maps(object, directory, &call, 2);
	if (result == 0)
		result = bpf_object__load(object);
	if (result < 0) {
		bpf_object__close(object);
		return number(env, result);
	}
	struct loaded *held = calloc(1, sizeof(*held));
	if (!held) {
		bpf_object__close(object);
		return number(env, -ENOMEM);
	}
	held->object = object;
	napi_value loaded, handle, maps, programs;
	napi_create_object(env, &loaded);
	napi_create_object(env, &maps);
	napi_create_object(env, &programs);
	napi_create_external(env, held, free_loaded, NULL, &handle);
	struct bpf_map *map;
	bpf_object__for_each_map(map, object)
		napi_set_named_property(env, maps, bpf_map__name(map), number(env, bpf_map__fd(map)));
	struct bpf_program *program;
	bpf_object__for_each_program(program, object)
		napi_set_named_property(env, programs, bpf_program__name(program),
					number(env, bpf_program__fd(program)));
	napi_set_named_property(env, loaded, "handle", handle);
	napi_set_named_property(env, loaded, "maps", maps);
	napi_set_named_property(env, loaded, "programs", programs);
	return loaded;
}

/* openPin(path) -> fd, -errno */
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

/* close(fd) -> 0, -errno */
static napi_value close_fd(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	if (call.bad)
		return NULL;
	return number(env, close(fd) < 0 ? -errno : 0);
}

/* shape(fd, into: Uint32Array of 3) -> 0, -errno; key size, value size, bound of a map */
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

struct tc_place {
	struct bpf_tc_hook hook;
	struct bpf_tc_opts options;
};

/* (interface index, egress: 0 or 1, handle, priority) from argument 0 on. libbpf wants the padding of both
 * structures to be zero, which only memset promises. */
static void read_tc_place(struct call *call, struct tc_place *place)
{
	memset(place, 0, sizeof(*place));
	place->hook.sz = sizeof(place->hook);
	place->options.sz = sizeof(place->options);
	place->hook.ifindex = integer(call, 0);
	place->hook.attach_point = integer(call, 1) ? BPF_TC_EGRESS : BPF_TC_INGRESS;
	place->options.handle = unsigned_integer(call, 2);
	place->options.priority = unsigned_integer(call, 3);
}

/* tcAttach(index, egress, handle, priority, program fd) -> 0, -errno. Replaces only the filter with that
 * handle and priority. */
static napi_value tc_attach(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct tc_place place;
	read_tc_place(&call, &place);
	place.options.prog_fd = integer(&call, 4);
	place.options.flags = BPF_TC_F_REPLACE;
	if (call.bad)
		return NULL;
	int result = bpf_tc_hook_create(&place.hook);
	if (result < 0 && result != -EEXIST)
		return number(env, result);
	return number(env, bpf_tc_attach(&place.hook, &place.options));
}

/* tcDetach(index, egress, handle, priority) -> 0, -errno */
static napi_value tc_detach(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct tc_place place;
	read_tc_place(&call, &place);
	if (call.bad)
		return NULL;
	return number(env, bpf_tc_detach(&place.hook, &place.options));
}

/* tcQuery(index, egress, handle, priority) -> program id, -errno (-ENOENT: nothing there) */
static napi_value tc_query(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct tc_place place;
	read_tc_place(&call, &place);
	if (call.bad)
		return NULL;
	int result = bpf_tc_query(&place.hook, &place.options);
	return number(env, result < 0 ? result : (double)place.options.prog_id);
}

/* programId(program fd) -> the kernel's number of it, -errno */
static napi_value program_id(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct bpf_prog_info found = {};
	__u32 size = sizeof(found);
	int fd = integer(&call, 0);
	if (call.bad)
		return NULL;
	if (bpf_obj_get_info_by_fd(fd, &found, &size) < 0)
		return number(env, -errno);
	return number(env, found.id);
}

/* A new link, or the pinned one with its program replaced. */
static int link_cgroup(const char *path, int program, enum bpf_attach_type type, const char *pin)
{
	int link = bpf_obj_get(pin);
	int result;
	if (link >= 0) {
		result = bpf_link_update(link, program, NULL) < 0 ? -errno : 0;
		close(link);
		if (result == 0)
			return 0;
		/* The cgroup that it was made for is gone. */
		unlink(pin);
	}
	int cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup < 0)
		return -errno;
	link = bpf_link_create(program, cgroup, type, NULL);
	result = link < 0 ? -errno : 0;
	close(cgroup);
	if (link < 0)
		return result;
	result = bpf_obj_pin(link, pin) < 0 ? -errno : 0;
	close(link);
	return result;
}

/* cgroupAttach(cgroup path, egress, program fd, pin path) -> 0, -errno */
static napi_value cgroup_attach(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE], pin[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	int egress = integer(&call, 1);
	int program = integer(&call, 2);
	text(&call, 3, pin, sizeof(pin));
	if (call.bad)
		return NULL;
	return number(env, link_cgroup(path, program, egress ? BPF_CGROUP_INET_EGRESS : BPF_CGROUP_INET_INGRESS, pin));
}

/* netfilterAttach(program fd, PF_*, priority, pin path) -> 0, -errno. Before routing, in this thread's network
 * namespace; what was pinned there before is let go once the new link stands. No two programs of one hook
 * have the same priority: -EBUSY. */
static napi_value netfilter_attach(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char pin[PATH_SIZE];
	struct {
		__u32 program, target, attach_type, flags;
		__u32 family, hook;
		__s32 priority;
		__u32 hook_flags;
	} wanted = { .attach_type = ATTACH_NETFILTER, .hook = 0 /* NF_INET_PRE_ROUTING */ };
	wanted.program = (__u32)integer(&call, 0);
	wanted.family = (__u32)integer(&call, 1);
	wanted.priority = integer(&call, 2);
	text(&call, 3, pin, sizeof(pin));
	if (call.bad)
		return NULL;
	int link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &wanted, sizeof(wanted));
	if (link < 0)
		return number(env, -errno);
	int result = unlink(pin) < 0 && errno != ENOENT ? -errno : 0;
	if (result == 0 && bpf_obj_pin(link, pin) < 0)
		result = -errno;
	close(link);
	return number(env, result);
}

/* testRun(program fd, packet, interface index) -> the program's return value as unsigned, -errno. An index of
 * 0 runs without a context. */
static napi_value test_run(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct __sk_buff context = {};
	size_t size = 0;
	int program = integer(&call, 0);
	void *packet = octets(&call, 1, 1, &size);
	context.ifindex = unsigned_integer(&call, 2);
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

/* A negative answer stops libbpf behind this record, which counts as read. */
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

/* ringOpen(map fd, octets of a record) -> handle, -errno */
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

/* ringDrain(handle, into) -> records copied, at most as many as fit; never waits */
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

/* possibleCpus() -> how many values a per-CPU map has, -errno */
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
		{ "possibleCpus", possible_cpus }, { NULL, NULL },
	};
	libbpf_set_print(keep_log);
	export_all(env, exports, list);
	return exports;
}
