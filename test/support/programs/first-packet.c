/* Asks for names and connects to the answered addresses as fast as a program can: `connect` is the next system
 * call after `recv`. test/kernel/packets/first-packet.test.ts compiles and runs it, in a pod's network namespace.
 *   first-packet RESOLVER FAMILY FIRST COUNT SUFFIX WAIT
 * Asks RESOLVER, port 53, for n<FIRST>.SUFFIX, n<FIRST+1>.SUFFIX, ... (FAMILY 4: A, 6: AAAA), and connects to
 * port 80. With WAIT 0, connect blocks until the end of the handshake. Otherwise it does not block, and has WAIT
 * milliseconds. Prints one line per name: index, address, ns from recv's return to connect's call, ns of connecting,
 * errno (0 connected, ETIMEDOUT too late). Times are CLOCK_MONOTONIC, which the vDSO reads without a system call.
 * The sockets are made before the query is sent, so no other call is between these two. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define HEADER 12
#define MESSAGE 512
#define TYPE_A 1
#define TYPE_AAAA 28

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* RFC 1035 4.1: header with RD and one question. */
static size_t write_query(uint8_t *m, uint16_t id, const char *name, uint16_t type)
{
	size_t at = HEADER;

	memset(m, 0, HEADER);
	m[0] = id >> 8;
	m[1] = id;
	m[2] = 1;
	m[5] = 1;
	for (const char *label = name; *label;) {
		size_t length = strcspn(label, ".");
		m[at++] = length;
		memcpy(m + at, label, length);
		at += length;
		label += length + (label[length] == '.');
	}
	m[at++] = 0;
	m[at++] = type >> 8;
	m[at++] = type;
	m[at++] = 0;
	m[at++] = 1;
	return at;
}

static size_t skip_name(const uint8_t *m, size_t size, size_t at)
{
	while (at < size && m[at] != 0) {
		if (m[at] >= 0xc0)
			return at + 2;
		at += m[at] + 1;
	}
	return at + 1;
}

/* The first record of the type in the answer section, or NULL. */
static const uint8_t *find_address(const uint8_t *m, size_t size, uint16_t id, uint16_t type)
{
	size_t length = type == TYPE_A ? 4 : 16;

	if (size < HEADER || m[0] != id >> 8 || m[1] != (id & 0xff) || (m[3] & 0xf) != 0)
		return NULL;
	size_t at = skip_name(m, size, HEADER) + 4;
	for (int left = m[6] << 8 | m[7]; left > 0; left--) {
		at = skip_name(m, size, at);
		if (at + 10 > size)
			return NULL;
		size_t data = m[at + 8] << 8 | m[at + 9];
		if ((m[at] << 8 | m[at + 1]) == type && data == length && at + 10 + data <= size)
			return m + at + 10;
		at += 10 + data;
	}
	return NULL;
}

static socklen_t make_target(struct sockaddr_storage *s, int family, const uint8_t *address, int port)
{
	memset(s, 0, sizeof(*s));
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)s;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, address, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)s;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, address, 16);
	return sizeof(*in6);
}

static int ask_socket(const char *resolver)
{
	struct sockaddr_storage target;
	uint8_t address[16];
	int family = strchr(resolver, ':') ? AF_INET6 : AF_INET;
	struct timeval limit = { .tv_sec = 3 };

	if (inet_pton(family, resolver, address) != 1)
		fail("resolver");
	int fd = socket(family, SOCK_DGRAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
		fail("socket");
	socklen_t size = make_target(&target, family, address, 53);
	if (connect(fd, (struct sockaddr *)&target, size) < 0)
		fail("connect to the resolver");
	return fd;
}

static int tcp_socket(int family, int wait)
{
	struct timeval limit = { .tv_sec = 5 };
	int fd = socket(family, SOCK_STREAM | (wait > 0 ? SOCK_NONBLOCK : 0), 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		fail("socket");
	return fd;
}

/* The result of a connect that did not block. */
static int settle(int fd, int error, int wait)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(error);

	if (error != EINPROGRESS)
		return error;
	if (wait == 0 || poll(&p, 1, wait) != 1)
		return ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		fail("getsockopt");
	return error;
}

static void try_name(int dns, int family, int index, const char *suffix, int wait)
{
	uint8_t query[MESSAGE], reply[MESSAGE];
	char name[256], text[INET6_ADDRSTRLEN];
	struct sockaddr_storage target;
	uint16_t type = family == AF_INET ? TYPE_A : TYPE_AAAA;

	snprintf(name, sizeof(name), "n%d.%s", index, suffix);
	size_t length = write_query(query, index, name, type);
	int fd = tcp_socket(family, wait);
	if (send(dns, query, length, 0) != (ssize_t)length)
		fail("send");

	ssize_t got = recv(dns, reply, sizeof(reply), 0);
	int64_t received = now_ns();
	const uint8_t *address = got < 0 ? NULL : find_address(reply, got, index, type);
	if (!address) {
		fprintf(stderr, "%s: no address (%zd octets, rcode %d)\n", name, got, got > 3 ? reply[3] & 15 : -1);
		exit(1);
	}
	socklen_t size = make_target(&target, family, address, 80);
	int64_t called = now_ns();
	int error = connect(fd, (struct sockaddr *)&target, size) < 0 ? errno : 0;
	error = settle(fd, error, wait);
	int64_t done = now_ns();

	inet_ntop(family, address, text, sizeof(text));
	printf("%d %s %lld %lld %d\n", index, text, (long long)(called - received), (long long)(done - called), error);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	int dns = ask_socket(argv[1]);
	int family = atoi(argv[2]) == 6 ? AF_INET6 : AF_INET;
	int first = atoi(argv[3]);

	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	for (int i = 0; i < atoi(argv[4]); i++)
		try_name(dns, family, first + i, argv[5], atoi(argv[6]));
	return 0;
}
