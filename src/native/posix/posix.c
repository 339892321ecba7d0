/* This addon has system calls that Node lacks and that need no libbpf: locks, cgroup ids, bpffs mounts, network interfaces
 * (links.h), sockets of this machine (local-socket.h) and routing rules (routing.h). Every function returns at once. A failed
 * call returns a negative errno. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#include "../addon.h"
#include "addresses.h"
#include "links.h"
#include "local-socket.h"
#include "routing.h"
#include "workload.h"

#define PATH_SIZE 4096
/* Most descriptors of one message of `receiveFds`. */
#define FDS_MAX 64

/* cgroupId(path) -> the id by which kernel programs know the cgroup (its kernfs handle), or -errno */
static napi_value cgroup_id(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE];
	int mount;
	uint64_t id = 0;
	struct {
		struct file_handle handle;
		unsigned char room[128];
	} found = { .handle = { .handle_bytes = 8 } };
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	if (name_to_handle_at(AT_FDCWD, path, &found.handle, &mount, 0) < 0)
		return number(env, errno == EOVERFLOW ? -EMEDIUMTYPE : -errno);
	memcpy(&id, found.handle.f_handle, sizeof(id));
	return number(env, (double)id);
}

/* lock(path) -> fd with an exclusive flock, -EWOULDBLOCK if another process has the lock, or -errno. An existing file can also be
 * locked on a read-only file system. The descriptor then accepts no writes. */
static napi_value lock(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == EROFS) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			errno = EROFS;
	}
	if (fd < 0)
		return number(env, -errno);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int result = -errno;
		close(fd);
		return number(env, result);
	}
	return number(env, fd);
}

/* mountBpf(path) -> 0, or -errno */
static napi_value mount_bpf(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	return number(env, mount("bpf", path, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0 ? -errno : 0);
}

/* unmount(path) -> 0, or -errno */
static napi_value unmount(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	return number(env, umount2(path, 0) < 0 ? -errno : 0);
}

/* clockSynchronized() -> 1 or 0, or -errno. Only reads the state of the clock. */
static napi_value clock_synchronized(napi_env env, napi_callback_info info)
{
	(void)info;
	struct timex state = { .modes = 0 };
	int result = adjtimex(&state);
	return number(env, result < 0 ? -errno : result != TIME_ERROR && !(state.status & STA_UNSYNC));
}

#define HUGE_PAGE (2 << 20)
#define SMALL_PAGE 4096
#define RANGES_MAX 4096
/* The heap keeps less than this between two large arrays. */
#define SIDE_BY_SIDE 8192
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

struct range {
	uintptr_t from, to;
};

static int by_address(const void *a, const void *b)
{
	const struct range *one = a, *other = b;
	return (one->from > other->from) - (one->from < other->from);
}

/* Reads the ranges of up to RANGES_MAX arrays, in the order of their addresses. Arrays side by side become one range. */
static size_t ranges_of(struct call *call, struct range *ranges)
{
	uint32_t count = 0;
	size_t used = 0;
	napi_get_array_length(call->env, call->values[0], &count);
	for (uint32_t i = 0; i < count && used < RANGES_MAX; i++) {
		napi_value each;
		napi_typedarray_type type;
		size_t length;
		void *data;
		if (napi_get_element(call->env, call->values[0], i, &each) == napi_ok &&
		    napi_get_typedarray_info(call->env, each, &type, &length, &data, NULL, NULL) == napi_ok &&
		    type == napi_uint8_array)
			ranges[used++] = (struct range){ (uintptr_t)data, (uintptr_t)data + length };
	}
	qsort(ranges, used, sizeof(*ranges), by_address);
	size_t last = 0;
	for (size_t i = 1; i < used; i++) {
		if (ranges[i].from - ranges[last].to <= SIDE_BY_SIDE)
			ranges[last].to = ranges[i].to;
		else
			ranges[++last] = ranges[i];
	}
	return used == 0 ? 0 : last + 1;
}

/* hugeAreas([octets, ...]) -> the addresses of all whole areas of 2 MiB in the arrays. */
static napi_value huge_areas(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct range *ranges = calloc(RANGES_MAX, sizeof(*ranges));
	uint32_t areas = 0;
	napi_value list;
	napi_create_array(env, &list);
	size_t count = ranges == NULL || call.count < 1 ? 0 : ranges_of(&call, ranges);
	for (size_t i = 0; i < count; i++) {
		uintptr_t at = (ranges[i].from + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
		for (; at + HUGE_PAGE <= ranges[i].to; at += HUGE_PAGE)
			napi_set_element(env, list, areas++, number(env, at));
	}
	free(ranges);
	return list;
}

/* makeHuge(address of an area) -> 1 if its touched pages are now one huge page, 0 if less than half of its pages were touched, or
 * -errno. */
static napi_value make_huge(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	double address = 0;
	unsigned char present[HUGE_PAGE / SMALL_PAGE];
	size_t touched = 0;
	if (call.count < 1 || napi_get_value_double(env, call.values[0], &address) != napi_ok) {
		refuse(&call, "an address", 0);
		return NULL;
	}
	void *area = (void *)(uintptr_t)address;
	if (sysconf(_SC_PAGESIZE) != SMALL_PAGE)
		return number(env, -EINVAL);
	if (mincore(area, HUGE_PAGE, present) < 0)
		return number(env, -errno);
	for (size_t i = 0; i < sizeof(present); i++)
		touched += present[i] & 1;
	if (touched * 2 < sizeof(present))
		return number(env, 0);
	if (madvise(area, HUGE_PAGE, MADV_HUGEPAGE) < 0 || madvise(area, HUGE_PAGE, MADV_COLLAPSE) < 0)
		return number(env, -errno);
	return number(env, 1);
}

/* socketPair() -> [fd, fd] of a pair that transfers descriptors (receiveFds), or -errno. Both close on exec. */
static napi_value socket_pair(napi_env env, napi_callback_info info)
{
	(void)info;
	int pair[2];
	napi_value list;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return number(env, -errno);
	napi_create_array_with_length(env, 2, &list);
	for (uint32_t i = 0; i < 2; i++)
		napi_set_element(env, list, i, number(env, pair[i]));
	return list;
}

/* datagramsTo(path) -> fd of a datagram socket that is connected to the UNIX socket at `path`, or -errno. A write to it never
 * waits. */
static napi_value datagrams_to(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char path[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	if (strlen(path) >= sizeof(to.sun_path))
		return number(env, -ENAMETOOLONG);
	strcpy(to.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return number(env, -errno);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		int error = errno;
		close(fd);
		return number(env, -error);
	}
	return number(env, fd);
}

/* receiveFds(fd) -> [fd, ...] of one message, -EAGAIN without a message, or -errno */
static napi_value receive_fds(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	char octet;
	struct iovec part = { &octet, 1 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	napi_value list;
	uint32_t at = 0;
	if (call.bad)
		return NULL;
	ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (got <= 0)
		return number(env, got < 0 ? -errno : -EPIPE);
	napi_create_array(env, &list);
	for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
		if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int taken;
			memcpy(&taken, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
			napi_set_element(env, list, at++, number(env, taken));
		}
	}
	return list;
}

/* unshareNetwork() -> 0, or -errno. Gives the calling thread, and all that it starts, a new network namespace. */
static napi_value unshare_network(napi_env env, napi_callback_info info)
{
	(void)info;
	return number(env, unshare(CLONE_NEWNET) < 0 ? -errno : 0);
}

NAPI_MODULE_INIT()
{
	static const struct export list[] = {
		{ "ifIndex", if_index },       { "ifType", if_type },       { "ifMaster", if_master },   { "linkSocket", link_socket },
		{ "linkDrain", link_drain },   { "cgroupId", cgroup_id },   { "lock", lock },
		{ "closeFd", close_fd },       { "mountBpf", mount_bpf },   { "unmount", unmount },
		{ "unshareNetwork", unshare_network }, { "ifList", if_list },
		{ "linkWatch", link_watch },   { "linkUnwatch", link_unwatch },
		{ "socketPair", socket_pair }, { "receiveFds", receive_fds }, { "datagramsTo", datagrams_to },
		{ "localSend", local_send },   { "localListen", local_listen }, { "localConnect", local_connect },
		{ "localOwner", local_owner },
		{ "localAccept", local_accept }, { "localPeer", local_peer }, { "messageSend", message_send },
		{ "messageReceive", message_receive }, { "socketFacts", socket_facts }, { "duplicate", duplicate },
		{ "routingRead", routing_read }, { "workloadInterface", workload_interface }, { "clockSynchronized", clock_synchronized },
		{ "ifAddresses", if_addresses }, { "addressSocket", address_socket }, { "addressesChanged", addresses_changed },
		{ "hugeAreas", huge_areas },   { "makeHuge", make_huge }, { NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
