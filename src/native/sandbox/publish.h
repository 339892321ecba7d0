/* `--publish` carries connections to ports of the caller's network namespace to the sandbox's loopback. A process carries them
 * outside the command's PID namespace, because a process with its sockets could connect to anywhere. The launcher forks this
 * process with the listening sockets already open. The process has no capability and ends with the launcher. */
#ifndef NAMEGATE_SANDBOX_PUBLISH_H
#define NAMEGATE_SANDBOX_PUBLISH_H

#include <arpa/inet.h>
#include <netinet/in.h>

#include "namespaces.h"
#include "sandbox.h"

#define PUBLISHED_MAX 64
#define PAIRS_MAX 256
#define CHUNK 65536

struct published {
	int fd;
	uint16_t inner;
};

static struct published published[PUBLISHED_MAX];
static int published_count;

/* Opens `ADDRESS PORT INNER`, which is one argument, in the caller's network namespace. */
static void open_published(const struct options *options)
{
	for (int i = 0; i < options->publish_count; i++) {
		char address[64];
		unsigned int port, inner;
		struct sockaddr_in in = { .sin_family = AF_INET };
		struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
		int on = 1;
		if (published_count == PUBLISHED_MAX || sscanf(options->publish[i], "%63s %u %u", address, &port, &inner) != 3)
			fail("publish", EINVAL, options->publish[i]);
		bool ipv4 = inet_pton(AF_INET, address, &in.sin_addr) == 1;
		must(ipv4 || inet_pton(AF_INET6, address, &in6.sin6_addr) == 1, "publish", options->publish[i]);
		in.sin_port = in6.sin6_port = htons((uint16_t)port);
		int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		must(fd >= 0, "publish", options->publish[i]);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (!ipv4)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		must((ipv4 ? bind(fd, (struct sockaddr *)&in, sizeof(in)) : bind(fd, (struct sockaddr *)&in6, sizeof(in6))) == 0 &&
			     listen(fd, 128) == 0,
		     "publish", options->publish[i]);
		published[published_count++] = (struct published){ fd, (uint16_t)inner };
	}
}

/* Carries one connection in a process of its own. Copies both ways until both ends are done. */
static _Noreturn void carry(int outside, uint16_t inner)
{
	static char buffer[CHUNK];
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(inner), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(inner), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int inside = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(inside, (struct sockaddr *)&in, sizeof(in)) < 0) {
		close(inside);
		inside = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (inside < 0 || connect(inside, (struct sockaddr *)&in6, sizeof(in6)) < 0)
			_exit(1);
	}
	struct pollfd ends[2] = { { outside, POLLIN, 0 }, { inside, POLLIN, 0 } };
	while (ends[0].fd >= 0 || ends[1].fd >= 0) {
		if (poll(ends, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		for (int i = 0; i < 2; i++) {
			int from = i == 0 ? outside : inside, to = i == 0 ? inside : outside;
			if (ends[i].fd < 0 || !ends[i].revents)
				continue;
			ssize_t got = recv(from, buffer, sizeof(buffer), 0);
			if (got <= 0) {
				shutdown(to, SHUT_WR);
				ends[i].fd = -1;
				if (got < 0)
					_exit(1);
				continue;
			}
			for (ssize_t at = 0; at < got;) {
				ssize_t sent = send(to, buffer + at, (size_t)(got - at), MSG_NOSIGNAL);
				if (sent < 0)
					_exit(1);
				at += sent;
			}
		}
	}
	_exit(0);
}

static _Noreturn void serve_published(void)
{
	struct pollfd ready[PUBLISHED_MAX];
	int carried = 0;
	for (int i = 0; i < published_count; i++)
		ready[i] = (struct pollfd){ published[i].fd, POLLIN, 0 };
	for (;;) {
		while (carried > 0 && waitpid(-1, NULL, carried < PAIRS_MAX ? WNOHANG : 0) > 0)
			carried--;
		if (poll(ready, (nfds_t)published_count, carried > 0 ? 1000 : -1) < 0 && errno != EINTR)
			_exit(1);
		for (int i = 0; i < published_count; i++) {
			int fd = ready[i].revents ? accept4(published[i].fd, NULL, NULL, SOCK_CLOEXEC) : -1;
			if (fd < 0)
				continue;
			pid_t child = fork();
			if (child == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				carry(fd, published[i].inner);
			}
			carried += child > 0;
			close(fd);
		}
	}
}

/* Must run after the network namespace was made and before the PID namespace is made. */
static void start_publishing(void)
{
	pid_t launcher = getpid();
	pid_t child = published_count > 0 ? fork() : 1;
	must(child >= 0, "fork", "");
	if (child == 0) {
		keep_capabilities(0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, 0);
		if (getppid() != launcher)
			_exit(1);
		close(CONTROL);
		serve_published();
	}
	for (int i = 0; i < published_count; i++)
		close(published[i].fd);
}

#endif
