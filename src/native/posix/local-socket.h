/* This file has socket calls that Node lacks, for sockets of this machine. It sends a datagram to the supervisor, exchanges
 * messages that carry descriptors, and finds the kind of a descriptor that another process handed over. A path that begins with
 * '@' is an abstract name. posix.c includes this file. */
#ifndef NAMEGATE_LOCAL_SOCKET_H
#define NAMEGATE_LOCAL_SOCKET_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../addon.h"

/* Most descriptors of one message (the kernel's SCM_MAX_FD). */
#define MESSAGE_FDS_MAX 253
/* Longer than any path that the kernel accepts. The kernel refuses a path that is too long. */
#define LOCAL_PATH_SIZE 4096
/* Octets of kernel buffer for messages between two processes. */
#define MESSAGE_BUFFER (4 << 20)

/* Returns the length of the address, or 0 if the path is too long. */
static socklen_t local_address(struct sockaddr_un *address, const char *path)
{
	size_t length = strlen(path);
	if (length == 0 || length >= sizeof(address->sun_path))
		return 0;
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path, path, length);
	if (path[0] != '@')
		return sizeof(*address);
	address->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* localSend(path, octets) -> 0, or -errno. Sends one datagram. */
static napi_value local_send(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct sockaddr_un address;
	char path[LOCAL_PATH_SIZE];
	size_t size = 0;
	text(&call, 0, path, sizeof(path));
	void *data = octets(&call, 1, 0, &size);
	if (call.bad)
		return NULL;
	socklen_t length = local_address(&address, path);
	if (length == 0)
		return number(env, -ENAMETOOLONG);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return number(env, -errno);
	ssize_t sent = sendto(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address, length);
	int result = sent < 0 ? -errno : 0;
	close(fd);
	return number(env, result);
}

static int local_socket(const char *path, bool listens)
{
	struct sockaddr_un address;
	int room = MESSAGE_BUFFER;
	socklen_t length = local_address(&address, path);
	if (length == 0)
		return -ENAMETOOLONG;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	/* The file takes the mode of the socket. So only its owner can use the file, from its first moment. */
	int failed = listens ? fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 4) < 0
			     : connect(fd, (struct sockaddr *)&address, length) < 0;
	int result = failed ? -errno : fd;
	if (failed)
		close(fd);
	return result;
}

/* localListen(path) -> fd that accepts connections for messages, or -errno */
static napi_value local_listen(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[LOCAL_PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	return call.bad ? NULL : number(env, local_socket(path, true));
}

/* localConnect(path) -> fd, or -errno */
static napi_value local_connect(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	char path[LOCAL_PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	return call.bad ? NULL : number(env, local_socket(path, false));
}

/* localOwner(path) -> pid of the process that listens there for streams, 0 if it belongs to another pid namespace, or -errno */
static napi_value local_owner(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct ucred owner;
	socklen_t size = sizeof(owner);
	struct sockaddr_un address;
	char path[LOCAL_PATH_SIZE];
	text(&call, 0, path, sizeof(path));
	if (call.bad)
		return NULL;
	socklen_t length = local_address(&address, path);
	if (length == 0)
		return number(env, -ENAMETOOLONG);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return number(env, -errno);
	int failed = connect(fd, (struct sockaddr *)&address, length) < 0 ||
		     getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) < 0;
	int result = failed ? -errno : owner.pid;
	close(fd);
	return number(env, result);
}

/* localAccept(fd) -> fd, -EAGAIN if no connection waits, or -errno */
static napi_value local_accept(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int room = MESSAGE_BUFFER, fd = integer(&call, 0);
	if (call.bad)
		return NULL;
	int taken = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (taken < 0)
		return number(env, -errno);
	setsockopt(taken, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	return number(env, taken);
}

/* localPeer(fd) -> [pid, uid] of the process at the other end, or -errno */
static napi_value local_peer(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct {
		int32_t pid;
		uint32_t uid, gid;
	} peer;
	socklen_t length = sizeof(peer);
	napi_value list;
	int fd = integer(&call, 0);
	if (call.bad)
		return NULL;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return number(env, -errno);
	napi_create_array_with_length(env, 2, &list);
	napi_set_element(env, list, 0, number(env, peer.pid));
	napi_set_element(env, list, 1, number(env, peer.uid));
	return list;
}

/* messageSend(fd, octets, descriptors: Int32Array, count) -> 0, -EAGAIN if the kernel has no room, or -errno */
static napi_value message_send(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	} control = {};
	size_t size = 0, most = 0;
	int fd = integer(&call, 0);
	void *data = octets(&call, 1, 1, &size);
	int32_t *fds = octets(&call, 2, 0, &most);
	uint32_t count = unsigned_integer(&call, 3);
	if (call.bad)
		return NULL;
	if (count > MESSAGE_FDS_MAX || count * sizeof(int) > most) {
		refuse(&call, "a number of descriptors", 3);
		return NULL;
	}
	struct iovec part = { data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	if (count > 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
	}
	return number(env, sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0);
}

/* messageReceive(fd, octets, descriptors: Int32Array) -> octets of one message, 0 at the end, -EAGAIN without a message,
 * -EMSGSIZE if the message was cut, or -errno. descriptors[0] is the number of received descriptors, which follow it.
 * `descriptors` has room for MESSAGE_FDS_MAX + 1. */
static napi_value message_receive(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	} control;
	size_t size = 0;
	int fd = integer(&call, 0);
	void *data = octets(&call, 1, 1, &size);
	int32_t *fds = octets(&call, 2, sizeof(int) * (MESSAGE_FDS_MAX + 1), NULL);
	if (call.bad)
		return NULL;
	struct iovec part = { data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	fds[0] = 0;
	ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (got < 0)
		return number(env, -errno);
	for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
		if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds + 1, CMSG_DATA(each), count * sizeof(int));
		fds[0] = (int32_t)count;
	}
	return number(env, message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EMSGSIZE : got);
}

/* duplicate(fd) -> another descriptor of the same file or socket, or -errno */
static napi_value duplicate(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	if (call.bad)
		return NULL;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return number(env, copy < 0 ? -errno : copy);
}

static int int_option(int fd, int level, int name)
{
	int value = 0;
	socklen_t length = sizeof(value);
	return getsockopt(fd, level, name, &value, &length) < 0 ? 0 : value;
}

/* socketFacts(fd, address: 16 octets) -> [family 4 or 6, SOCK_*, port, listens, transparent, IPv6 only], -EAFNOSUPPORT if it is
 * no IP socket, or -errno. Also makes the descriptor close-on-exec and non-blocking. */
static napi_value socket_facts(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct sockaddr_storage name = {};
	socklen_t length = sizeof(name);
	napi_value list;
	int fd = integer(&call, 0);
	uint8_t *address = octets(&call, 1, 16, NULL);
	if (call.bad)
		return NULL;
	if (getsockname(fd, (struct sockaddr *)&name, &length) < 0)
		return number(env, -errno);
	bool v4 = name.ss_family == AF_INET;
	if (!v4 && name.ss_family != AF_INET6)
		return number(env, -EAFNOSUPPORT);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return number(env, -errno);
	memset(address, 0, 16);
	if (v4)
		memcpy(address, &((struct sockaddr_in *)&name)->sin_addr, 4);
	else
		memcpy(address, &((struct sockaddr_in6 *)&name)->sin6_addr, 16);
	double facts[] = {
		v4 ? 4 : 6,
		int_option(fd, SOL_SOCKET, SO_TYPE),
		ntohs(((struct sockaddr_in *)&name)->sin_port),
		int_option(fd, SOL_SOCKET, SO_ACCEPTCONN),
		v4 ? int_option(fd, IPPROTO_IP, IP_TRANSPARENT) : int_option(fd, IPPROTO_IPV6, IPV6_TRANSPARENT),
		v4 ? 0 : int_option(fd, IPPROTO_IPV6, IPV6_V6ONLY),
	};
	napi_create_array_with_length(env, 6, &list);
	for (uint32_t i = 0; i < 6; i++)
		napi_set_element(env, list, i, number(env, facts[i]));
	return list;
}

#endif
