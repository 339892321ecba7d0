/* The system calls that Node lacks and that need no libbpf: locks, interface numbers, news of interfaces,
 * cgroup ids, bpffs mounts, sockets of this machine (local-socket.h), rules of routing (routing.h). Every function
 * returns at once. Failures are negative errno values. Without uv.h at build time news of interfaces can't be
 * watched, only drained. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "addon.h"
#include "local-socket.h"
#include "routing.h"
#if __has_include(<uv.h>)
#include "watch.h"
#endif

#define PATH_SIZE 4096
/* Descriptors of one message. */
#define FDS_MAX 64

/* ifIndex(name) -> index, -ENODEV */
static napi_value if_index(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char name[256];
	text(&call, 0, name, sizeof(name));
	if (call.bad)
		return NULL;
	unsigned int index = strlen(name) < IFNAMSIZ ? if_nametoindex(name) : 0;
	return number(env, index ? (double)index : -ENODEV);
}

/* ifType(name) -> ARPHRD_* of if_arp.h, -errno */
static napi_value if_type(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct ifreq request = {};
	text(&call, 0, request.ifr_name, IFNAMSIZ);
	if (call.bad)
		return NULL;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return number(env, -errno);
	int result = ioctl(fd, SIOCGIFHWADDR, &request) < 0 ? -errno : request.ifr_hwaddr.sa_family;
	close(fd);
	return number(env, result);
}

/* ifList() -> [index, name, index, name, ...] of the interfaces that there are, -errno */
static napi_value if_list(napi_env env, napi_callback_info info)
{
	(void)info;
	struct if_nameindex *found = if_nameindex();
	napi_value list;
	uint32_t at = 0;
	if (!found)
		return number(env, -errno);
	napi_create_array(env, &list);
	for (struct if_nameindex *each = found; each->if_index; each++) {
		napi_set_element(env, list, at++, number(env, each->if_index));
		napi_set_element(env, list, at++, string(env, each->if_name));
	}
	if_freenameindex(found);
	return list;
}

/* ifMaster(index) -> index of the interface that it is a port of, 0 when of none, -errno */
static napi_value if_master(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} ask = { .head = { .nlmsg_len = sizeof(ask), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST } };
	static char buffer[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
	int master = 0;
	ask.link.ifi_index = integer(&call, 0);
	if (call.bad)
		return NULL;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return number(env, -errno);
	ssize_t got = send(fd, &ask, sizeof(ask), 0);
	/* The kernel answers within the send. */
	if (got >= 0)
		got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	int error = got < 0 ? -errno : 0;
	close(fd);
	int left = (int)got;
	struct nlmsghdr *m = (struct nlmsghdr *)buffer;
	if (error != 0)
		return number(env, error);
	if (!NLMSG_OK(m, left) || m->nlmsg_type != RTM_NEWLINK)
		return number(env, -ENODEV);
	struct ifinfomsg *link = NLMSG_DATA(m);
	int length = IFLA_PAYLOAD(m);
	struct rtattr *attribute;
	for (attribute = IFLA_RTA(link); RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length))
		if (attribute->rta_type == IFLA_MASTER)
			memcpy(&master, RTA_DATA(attribute), sizeof(master));
	return number(env, master);
}

/* linkSocket() -> fd of a netlink socket that hears of interfaces and of what is taken off them, -errno */
static napi_value link_socket(napi_env env, napi_callback_info info)
{
	(void)info;
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_TC };
	int room = 1 << 20;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd < 0)
		return number(env, -errno);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int result = -errno;
		close(fd);
		return number(env, result);
	}
	return number(env, fd);
}

static const char *name_of_link(struct nlmsghdr *message, struct ifinfomsg *link)
{
	int length = IFLA_PAYLOAD(message);
	struct rtattr *attribute;
	for (attribute = IFLA_RTA(link); RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length))
		if (attribute->rta_type == IFLA_IFNAME)
			return RTA_DATA(attribute);
	return "";
}

/* Of a message that a filter or what carries filters was taken off an interface; the name is the one of now. */
static int bare_link(struct nlmsghdr *message, char name[IF_NAMESIZE])
{
	struct tcmsg *filter = NLMSG_DATA(message);
	if (message->nlmsg_type != RTM_DELTFILTER && message->nlmsg_type != RTM_DELQDISC)
		return 0;
	return if_indextoname(filter->tcm_ifindex, name) ? filter->tcm_ifindex : 0;
}

/* linkDrain(fd) -> [index, name, index, name, ...] of interfaces that came, changed, went or lost a filter; a negative
 * errno: news was lost, look at all of them. */
static napi_value link_drain(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	static char buffer[65536] __attribute__((aligned(NLMSG_ALIGNTO)));
	napi_value list;
	uint32_t at = 0;
	if (call.bad)
		return NULL;
	napi_create_array(env, &list);
	for (;;) {
		ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return list;
		if (got <= 0)
			return number(env, got < 0 ? -errno : -EPIPE);
		int left = (int)got;
		for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			char name[IF_NAMESIZE];
			int bare = bare_link(m, name);
			if (bare > 0) {
				napi_set_element(env, list, at++, number(env, bare));
				napi_set_element(env, list, at++, string(env, name));
			}
			if (m->nlmsg_type != RTM_NEWLINK && m->nlmsg_type != RTM_DELLINK)
				continue;
			struct ifinfomsg *link = NLMSG_DATA(m);
			napi_set_element(env, list, at++, number(env, link->ifi_index));
			napi_set_element(env, list, at++, string(env, name_of_link(m, link)));
		}
	}
}

#if __has_include(<uv.h>)
static void drop_watch(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)data;
	(void)hint;
}

/* linkWatch(fd, function, keeps) -> handle, -errno. The function is called while there is something to read; the watch
 * keeps no process alive unless told so. The caller holds the handle and ends the watch before it closes the descriptor. */
static napi_value link_watch(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	napi_value handle;
	if (call.bad)
		return NULL;
	struct watch *watch = watch_start(env, fd, call.values[1]);
	if (!watch)
		return number(env, -ENOTSUP);
	if (call.count < 3 || integer(&call, 2) == 0)
		uv_unref((uv_handle_t *)&watch->poll);
	napi_create_external(env, watch, drop_watch, NULL, &handle);
	return handle;
}

/* linkUnwatch(handle) -> 0; once for each handle */
static napi_value link_unwatch(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	void *watch = NULL;
	if (call.bad || call.count < 1 || napi_get_value_external(env, call.values[0], &watch) != napi_ok || !watch)
		return number(env, -EINVAL);
	watch_stop(watch);
	return number(env, 0);
}
#else
static napi_value link_watch(napi_env env, napi_callback_info info)
{
	(void)info;
	return number(env, -ENOSYS);
}

static napi_value link_unwatch(napi_env env, napi_callback_info info)
{
	(void)info;
	return number(env, -ENOSYS);
}
#endif

/* cgroupId(path) -> the id that the kernel's programs see (kernfs handle), -errno */
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

/* lock(path) -> fd with an exclusive flock, -EWOULDBLOCK when another process has it, -errno. A file that is there can be
   locked on a read-only file system too; the descriptor takes no writes then. */
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

/* closeFd(fd) -> 0, -errno */
static napi_value close_fd(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	if (call.bad)
		return NULL;
	return number(env, close(fd) < 0 ? -errno : 0);
}

/* mountBpf(path) -> 0, -errno */
static napi_value mount_bpf(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	return number(env, mount("bpf", path, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0 ? -errno : 0);
}

/* unmount(path) -> 0, -errno */
static napi_value unmount(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	return number(env, umount2(path, 0) < 0 ? -errno : 0);
}

/* socketPair() -> [fd, fd] of a pair that passes descriptors (receiveFds), -errno. Neither outlives an exec. */
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

/* datagramsTo(path) -> fd, -errno. A datagram socket connected to the UNIX socket at `path`; writes to it never wait. */
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

/* receiveFds(fd) -> [fd, ...] of one message that has come, -EAGAIN when none has, -errno */
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

/* unshareNetwork() -> 0, -errno. The calling thread, and what it starts, get a network namespace of their own. */
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
		{ "routingRead", routing_read }, { NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
