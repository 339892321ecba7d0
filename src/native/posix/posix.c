/* This addon has system calls that Node lacks and that need no libbpf: locks, cgroup ids, bpffs mounts, network interfaces
 * (links.h), sockets of this machine (local-socket.h) and routing rules (routing.h). Every function returns at once. A failed
 * call returns a negative errno. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#include "../addon.h"
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
		{ "routingRead", routing_read }, { "workloadInterface", workload_interface }, { "clockSynchronized", clock_synchronized }, { NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
