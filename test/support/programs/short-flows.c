/* Begins many short flows as fast as one process can, and a server that ends connections at once.
 * test/kernel/ebpf/short-flows.test.ts compiles and runs it.
 *   short-flows serve PORT                               accepts TCP connections and closes them, until it is killed
 *   short-flows udp FIRST ADDRESSES PORT BASE COUNT      one datagram a flow
 *   short-flows tcp FIRST ADDRESSES PORT COUNT           connect, then close: every other one by FIN, the rest by RST
 * A UDP flow is a (source port, address) pair that no other flow of the call has: source ports BASE, BASE+1, ...,
 * each to ADDRESSES addresses from FIRST on (IPv4 or IPv6). Prints how many flows were sent (udp: handed to the
 * kernel; tcp: connected). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH 256
#define OPENING 64
#define CONNECT_MS 2000

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The address `offset` places after FIRST, with PORT. */
static socklen_t target_of(struct sockaddr_in6 *to, const char *first, uint32_t offset, int port)
{
	memset(to, 0, sizeof(*to));
	if (strchr(first, ':')) {
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(port);
		if (inet_pton(AF_INET6, first, &to->sin6_addr) != 1)
			fail("address");
		uint32_t low = ntohl(to->sin6_addr.s6_addr32[3]) + offset;
		to->sin6_addr.s6_addr32[3] = htonl(low);
		return sizeof(*to);
	}
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	if (inet_pton(AF_INET, first, &in->sin_addr) != 1)
		fail("address");
	in->sin_addr.s_addr = htonl(ntohl(in->sin_addr.s_addr) + offset);
	return sizeof(*in);
}

static int bound_socket(int family, int port)
{
	struct sockaddr_in6 own = { .sin6_family = family, .sin6_port = htons(port) };
	int fd = socket(family, SOCK_DGRAM, 0);

	/* sockaddr_in has its port at the same place, and zeroes after it mean any address of either family. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(own)) < 0)
		fail("bind");
	return fd;
}

static void send_batch(int fd, struct mmsghdr *messages, int count)
{
	for (int done = 0; done < count;) {
		int sent = sendmmsg(fd, messages + done, count - done, 0);
		if (sent < 0 && errno != ENOBUFS && errno != EINTR)
			fail("sendmmsg");
		if (sent > 0)
			done += sent;
	}
}

static long run_udp(const char *first, uint32_t addresses, int port, int base, long count)
{
	static struct sockaddr_in6 targets[BATCH];
	static struct mmsghdr messages[BATCH];
	struct iovec payload = { .iov_base = "x", .iov_len = 1 };
	int family = strchr(first, ':') ? AF_INET6 : AF_INET;
	long sent = 0;

	for (int i = 0; sent < count; i++) {
		int fd = bound_socket(family, base + i);
		for (uint32_t offset = 0; offset < addresses && sent < count;) {
			int filled = 0;
			while (filled < BATCH && offset < addresses && sent + filled < count) {
				struct msghdr *header = &messages[filled].msg_hdr;
				header->msg_namelen = target_of(&targets[filled], first, offset++, port);
				header->msg_name = &targets[filled++];
				header->msg_iov = &payload;
				header->msg_iovlen = 1;
			}
			send_batch(fd, messages, filled);
			sent += filled;
		}
		close(fd);
	}
	return sent;
}

static int begin_tcp(const char *first, uint32_t offset, int port)
{
	struct sockaddr_in6 target;
	socklen_t size = target_of(&target, first, offset, port);
	int fd = socket(target.sin6_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		fail("socket");
	if (connect(fd, (struct sockaddr *)&target, size) < 0 && errno != EINPROGRESS)
		fail("connect");
	return fd;
}

/* 1 if it was connected in time. */
static int end_tcp(int fd, int by_reset)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
	int error = ETIMEDOUT;
	socklen_t size = sizeof(error);

	if (poll(&p, 1, CONNECT_MS) == 1)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (by_reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
	return error == 0;
}

static long run_tcp(const char *first, uint32_t addresses, int port, long count)
{
	long connected = 0;
	int open[OPENING];

	for (long begun = 0; begun < count;) {
		int opening = 0;
		while (opening < OPENING && begun < count)
			open[opening++] = begin_tcp(first, begun++ % addresses, port);
		for (int i = 0; i < opening; i++)
			connected += end_tcp(open[i], i & 1);
	}
	return connected;
}

static void serve(int port)
{
	struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int one = 1;
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	int sink = bound_socket(AF_INET6, port);

	if (fd < 0 || sink < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		fail("socket");
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0 || listen(fd, 4096) < 0)
		fail("listen");
	puts("ready");
	fflush(stdout);
	for (;;) {
		int accepted = accept(fd, NULL, NULL);
		if (accepted >= 0)
			close(accepted);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(atoi(argv[2]));
	else if (argc == 7 && strcmp(argv[1], "udp") == 0)
		printf("%ld\n", run_udp(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), atol(argv[6])));
	else if (argc == 6 && strcmp(argv[1], "tcp") == 0)
		printf("%ld\n", run_tcp(argv[2], atoi(argv[3]), atoi(argv[4]), atol(argv[5])));
	else
		return 2;
	return 0;
}
