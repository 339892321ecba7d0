/* This file opens sockets of the sandbox's network namespace that the gate uses from outside: DNS listeners and netlink sockets.
 * A socket belongs to the namespace in which it was opened, whatever process holds it. One message sends all sockets to the gate
 * by SCM_RIGHTS. Their order is UDP 4, TCP 4, UDP 6, TCP 6, then NETLINKS netfilter sockets, then one socket that receives
 * interface events. Without IPv6 the two IPv6 sockets are missing. */
#ifndef NAMEGATE_SANDBOX_SOCKETS_H
#define NAMEGATE_SANDBOX_SOCKETS_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include "sandbox.h"

#define DNS_PORT 53
#define NETLINKS 10
#define ANSWER_SECONDS 2
#define BUFFER (16 << 20)
#define SOCKETS_MAX 16

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(fd >= 0, "loopback", "socket");
	must(ioctl(fd, SIOCGIFFLAGS, &request) == 0, "loopback", "flags");
	request.ifr_flags |= IFF_UP;
	must(ioctl(fd, SIOCSIFFLAGS, &request) == 0, "loopback", "up");
	close(fd);
}

/* Makes IPv6 addresses usable without duplicate address detection (RFC 4862 section 5.4), on interfaces that are added later. No other host
 * is on the link of the sandbox. The detection sends packets without a source address. Older versions of pasta, such as that of Debian 12,
 * take this source for the command's address. They then send to an address that no connection of the command has. A kernel without IPv6
 * lacks the files. */
static void trust_addresses(void)
{
	write_file("/proc/sys/net/ipv6/conf/all/accept_dad", "0");
	write_file("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
}

/* Opens a DNS listener on loopback. Returns -1 if the kernel lacks the family. */
static int open_listener(int family, int type)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(DNS_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(DNS_PORT), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool ipv4 = family == AF_INET;
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	int on = 1;
	if (!ipv4)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	int bound = ipv4 ? bind(fd, (struct sockaddr *)&in, sizeof(in)) : bind(fd, (struct sockaddr *)&in6, sizeof(in6));
	if (bound == 0 || ipv4)
		return bound == 0 ? fd : -1;
	close(fd);
	return -1;
}

/* Opens a socket with the same settings as nlOpen and ctOpen of the addons. */
static int open_netfilter(void)
{
	int size = BUFFER;
	struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	must(fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof(own)) == 0, "netlink", "NETLINK_NETFILTER");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static int open_links(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "netlink", "NETLINK_ROUTE");
	return fd;
}

static void send_sockets(const int *fds, size_t count)
{
	char text[1] = { (char)count };
	struct iovec part = { text, 1 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * SOCKETS_MAX)];
	} control = { 0 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int) * count) };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(rights), fds, sizeof(int) * count);
	must(sendmsg(SOCKETS, &message, MSG_NOSIGNAL) == 1, "sockets", "sendmsg");
}

static void hand_out_sockets(void)
{
	int fds[SOCKETS_MAX];
	size_t count = 0;
	loopback_up();
	trust_addresses();
	for (int i = 0; i < 4; i++) {
		int family = i < 2 ? AF_INET : AF_INET6;
		int fd = open_listener(family, i % 2 == 0 ? SOCK_DGRAM : SOCK_STREAM);
		must(fd >= 0 || family == AF_INET6, "listener", "port 53 on loopback");
		if (fd >= 0)
			fds[count++] = fd;
	}
	for (int i = 0; i < NETLINKS; i++)
		fds[count++] = open_netfilter();
	fds[count++] = open_links();
	send_sockets(fds, count);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	close(SOCKETS);
}

#endif
