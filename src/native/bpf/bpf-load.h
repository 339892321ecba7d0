/* This file loads an object and pins its maps. A map that is already pinned is used again. The file keeps libbpf's log for error
 * messages. */
#ifndef NAMEGATE_BPF_LOAD_H
#define NAMEGATE_BPF_LOAD_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../addon.h"

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

/* lastLog() -> what libbpf wrote since the last load */
static napi_value last_log(napi_env env, napi_callback_info info)
{
	(void)info;
	return string(env, log_text);
}

/* raiseMemlock() -> 0, or -errno. Kernels before 5.11 charge maps to RLIMIT_MEMLOCK. */
static napi_value raise_memlock(napi_env env, napi_callback_info info)
{
	(void)info;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	return number(env, setrlimit(RLIMIT_MEMLOCK, &limit) < 0 ? -errno : 0);
}

/* What a handle holds. unload() closes the object. Without unload(), the object is closed when the collector frees the handle. */
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

/* unload(handle) -> 0. Closes the descriptors. Pins and attached programs stay. */
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

/* Uses the pinned map of that name if there is one of the same shape. The pinned map keeps its size, whatever size the caller
 * wants. */
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

/* libbpf before 1.3 does not know this section. */
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

/* Loads only the programs whose section begins with `section`. */
static void choose_programs(struct bpf_object *object, const char *section)
{
	struct bpf_program *program;
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, strncmp(bpf_program__section_name(program), section,
							   strlen(section)) == 0);
}

/* Uses the maps of an object that is loaded. */
static int share_maps(struct bpf_object *object, const struct bpf_object *loaded)
{
	struct bpf_map *map;
	bpf_object__for_each_map(map, object) {
		const struct bpf_map *other = bpf_object__find_map_by_name(loaded, bpf_map__name(map));
		int result = other ? bpf_map__reuse_fd(map, bpf_map__fd(other)) : -ENOENT;
		if (result < 0) {
			snprintf(log_text, LOG_SIZE, "map %s", bpf_map__name(map));
			return result;
		}
	}
	return 0;
}

static napi_value describe(napi_env env, struct loaded *held)
{
	struct bpf_object *object = held->object;
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
		if (bpf_program__autoload(program))
			napi_set_named_property(env, programs, bpf_program__name(program),
						number(env, bpf_program__fd(program)));
	napi_set_named_property(env, loaded, "handle", handle);
	napi_set_named_property(env, loaded, "maps", maps);
	napi_set_named_property(env, loaded, "programs", programs);
	return loaded;
}

/* load(object, section, pin directory, { map: entries } or handle) -> { handle, maps: { name: fd }, programs: { name: fd } }, or
 * -errno, which lastLog() explains. Loads the programs whose section begins with `section`. With the handle of a loaded object the
 * programs use its maps, and the pin directory is not read. The descriptors stay open as long as the handle exists. */
static napi_value load(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char section[64], directory[PATH_SIZE];
	size_t size = 0;
	napi_valuetype type = napi_undefined;
	struct loaded *beside = NULL;
	const void *file = octets(&call, 0, 1, &size);
	text(&call, 1, section, sizeof(section));
	text(&call, 2, directory, sizeof(directory));
	if (call.bad)
		return NULL;
	if (call.count > 3)
		napi_typeof(env, call.values[3], &type);
	if (type == napi_external)
		napi_get_value_external(env, call.values[3], (void **)&beside);
	else if (type != napi_object)
		refuse(&call, "a handle, or numbers of entries", 3);
	if (beside && !beside->object)
		refuse(&call, "the handle of a loaded object", 3);
	if (call.bad)
		return NULL;
	log_length = 0;
	log_text[0] = 0;
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "namegate");
	struct bpf_object *object = bpf_object__open_mem(file, size, &options);
	if (!object)
		return number(env, -errno);
	name_types(object);
	choose_programs(object, section);
	int result = beside ? share_maps(object, beside->object) : prepare_maps(object, directory, &call, 3);
	if (result == 0)
		result = bpf_object__load(object);
	struct loaded *held = result == 0 ? calloc(1, sizeof(*held)) : NULL;
	if (!held) {
		bpf_object__close(object);
		return number(env, result < 0 ? result : -ENOMEM);
	}
	held->object = object;
	return describe(env, held);
}

#endif
