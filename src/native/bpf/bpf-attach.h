/* This file attaches programs to interfaces (tc), cgroups and netfilter. Links to cgroups and netfilter are pinned, so they
 * outlive the process. */
#ifndef NAMEGATE_BPF_ATTACH_H
#define NAMEGATE_BPF_ATTACH_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../addon.h"
#include "bpf-load.h"

struct tc_place {
	struct bpf_tc_hook hook;
	struct bpf_tc_opts options;
};

/* Reads (interface index, egress: 0 or 1, handle, priority) from argument 0 on. libbpf requires zeroed padding in both
 * structures, and only memset guarantees zeroes. */
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

/* tcAttach(index, egress, handle, priority, program fd) -> 0, or -errno. Replaces only the filter with this handle and priority. */
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

/* tcDetach(index, egress, handle, priority) -> 0, or -errno */
static napi_value tc_detach(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct tc_place place;
	read_tc_place(&call, &place);
	if (call.bad)
		return NULL;
	return number(env, bpf_tc_detach(&place.hook, &place.options));
}

/* tcQuery(index, egress, handle, priority) -> the program's id, -ENOENT if no program is attached, or -errno */
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

/* programId(program fd) -> the kernel's id of the program, or -errno */
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

/* Makes a new link, or replaces the program of the pinned link. */
static int link_cgroup(const char *path, int program, enum bpf_attach_type type, const char *pin)
{
	int link = bpf_obj_get(pin);
	int result;
	if (link >= 0) {
		result = bpf_link_update(link, program, NULL) < 0 ? -errno : 0;
		close(link);
		if (result == 0)
			return 0;
		/* The cgroup of the pinned link is gone. */
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

/* cgroupAttach(cgroup path, egress, program fd, pin path) -> 0, or -errno */
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

/* netfilterAttach(program fd, PF_*, priority, pin path) -> 0, or -errno. Attaches before routing, in this thread's network
 * namespace. When the new link exists, it replaces the link pinned earlier. Two programs of one hook cannot have the same
 * priority: the second fails with -EBUSY. */
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

#endif
