/* What routing policy holds under one protocol number (rtm_protocol), as octets to be compared with those of another time:
 * rules of both families, and routes of one table. Only what somebody set is in them, so the octets are the same as long as nothing
 * was changed. Needs no privilege; some ten system calls. Included by posix.c. */
#ifndef NAMEGATE_ROUTING_H
#define NAMEGATE_ROUTING_H

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "addon.h"

struct routing_request {
	struct nlmsghdr head;
	/* For rules `struct fib_rule_hdr`, which has the same fields in these places. */
	struct rtmsg route;
	struct rtattr attribute;
	uint32_t table;
};

/* Where octets go; what there is no room for is left out. */
struct routing_octets {
	uint8_t *into;
	size_t size;
	size_t at;
};

static void routing_put(struct routing_octets *to, const void *data, size_t size)
{
	if (size > to->size - to->at)
		size = to->size - to->at;
	memcpy(to->into + to->at, data, size);
	to->at += size;
}

static int rule_protocol(const struct nlmsghdr *message)
{
	const struct fib_rule_hdr *rule = NLMSG_DATA(message);
	const struct rtattr *attribute = (const struct rtattr *)((const char *)rule + NLMSG_ALIGN(sizeof(*rule)));
	int length = NLMSG_PAYLOAD(message, sizeof(*rule));
	for (; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length))
		if (attribute->rta_type == FRA_PROTOCOL)
			return *(const uint8_t *)RTA_DATA(attribute);
	return 0;
}

/* A route's times and counts change by themselves. */
static void routing_take(const struct nlmsghdr *message, int protocol, struct routing_octets *to)
{
	const struct rtmsg *route = NLMSG_DATA(message);
	int is_route = message->nlmsg_type == RTM_NEWROUTE;
	int length = RTM_PAYLOAD(message);
	if (!is_route && message->nlmsg_type != RTM_NEWRULE)
		return;
	if ((is_route ? route->rtm_protocol : rule_protocol(message)) != protocol)
		return;
	routing_put(to, route, sizeof(*route));
	for (const struct rtattr *attribute = RTM_RTA(route); RTA_OK(attribute, length);
	     attribute = RTA_NEXT(attribute, length))
		if (!is_route || attribute->rta_type != RTA_CACHEINFO)
			routing_put(to, attribute, attribute->rta_len);
}

/* 0, -errno. What the kernel refuses to list is not there: a table that has no route, a family that it lacks. */
static int routing_list(int fd, struct routing_request *ask, int protocol, struct routing_octets *to)
{
	static char buffer[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
	if (send(fd, ask, ask->head.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		/* The kernel lists within the send and each recv: it never makes us wait. */
		ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EPIPE;
		int left = (int)got;
		for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR)
				return 0;
			routing_take(m, protocol, to);
		}
	}
}

static int routing_both(int fd, int family, int protocol, uint32_t table, struct routing_octets *to)
{
	struct routing_request ask = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct fib_rule_hdr)),
			  .nlmsg_type = RTM_GETRULE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.route = { .rtm_family = family },
	};
	int result = routing_list(fd, &ask, protocol, to);
	if (result < 0)
		return result;
	ask.head.nlmsg_len = sizeof(ask);
	ask.head.nlmsg_type = RTM_GETROUTE;
	ask.route.rtm_protocol = protocol;
	ask.attribute = (struct rtattr){ .rta_len = RTA_LENGTH(sizeof(table)), .rta_type = RTA_TABLE };
	ask.table = table;
	return routing_list(fd, &ask, protocol, to);
}

/* routingRead(protocol, table, into) -> how many octets, -errno */
static napi_value routing_read(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct routing_octets to = { 0 };
	int protocol = integer(&call, 0), strict = 1;
	uint32_t table = unsigned_integer(&call, 1);
	to.into = octets(&call, 2, 1, &to.size);
	if (call.bad)
		return NULL;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return number(env, -errno);
	/* Then it looks into the one table only; without, into all of them. */
	setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &strict, sizeof(strict));
	int result = routing_both(fd, AF_INET, protocol, table, &to);
	if (result == 0)
		result = routing_both(fd, AF_INET6, protocol, table, &to);
	close(fd);
	return number(env, result < 0 ? result : (double)to.at);
}

#endif
