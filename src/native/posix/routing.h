/* This file reads the part of the routing policy that concerns one user (here namegate) as octets. The caller compares the octets
 * with octets that it read earlier. The octets contain:
 * - the routes of the user's table
 * - the rules of both families that have the user's protocol number (rtm_protocol), that match the user's mark, or that come no
 *   later than the user's last rule
 *
 * The octets hold only configured fields, so they stay the same until the configuration changes. A read needs no privilege and
 * makes about ten system calls. posix.c includes this file. */
#ifndef NAMEGATE_ROUTING_H
#define NAMEGATE_ROUTING_H

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../addon.h"

struct routing_request {
	struct nlmsghdr head;
	/* In a request for rules this is `struct fib_rule_hdr`, which has the same fields at these places. */
	struct rtmsg route;
	struct rtattr attribute;
	uint32_t table;
};

/* The user whose routing is read. */
struct routing_user {
	int protocol;
	uint32_t table, mark, last;
};

/* Where the octets are written. Octets without room are left out. */
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

static int rule_concerns(const struct nlmsghdr *message, const struct routing_user *user)
{
	const struct fib_rule_hdr *rule = NLMSG_DATA(message);
	const struct rtattr *attribute = (const struct rtattr *)((const char *)rule + NLMSG_ALIGN(sizeof(*rule)));
	int length = NLMSG_PAYLOAD(message, sizeof(*rule));
	/* The kernel leaves out a field whose value is 0. */
	uint32_t preference = 0, mark = 0, mask = UINT32_MAX;
	int protocol = 0;
	for (; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length)) {
		const void *data = RTA_DATA(attribute);
		if (attribute->rta_type == FRA_PROTOCOL)
			protocol = *(const uint8_t *)data;
		else if (attribute->rta_type == FRA_PRIORITY)
			memcpy(&preference, data, sizeof(preference));
		else if (attribute->rta_type == FRA_FWMARK)
			memcpy(&mark, data, sizeof(mark));
		else if (attribute->rta_type == FRA_FWMASK)
			memcpy(&mask, data, sizeof(mask));
	}
	return protocol == user->protocol || preference <= user->last ||
	       (mark && ((mark ^ user->mark) & mask) == 0);
}

/* Leaves out RTA_CACHEINFO, because the kernel changes a route's times and counts by itself. */
static void routing_take(const struct nlmsghdr *message, const struct routing_user *user, struct routing_octets *to)
{
	const struct rtmsg *route = NLMSG_DATA(message);
	int is_route = message->nlmsg_type == RTM_NEWROUTE;
	int length = RTM_PAYLOAD(message);
	if (!is_route && (message->nlmsg_type != RTM_NEWRULE || !rule_concerns(message, user)))
		return;
	routing_put(to, route, sizeof(*route));
	for (const struct rtattr *attribute = RTM_RTA(route); RTA_OK(attribute, length);
	     attribute = RTA_NEXT(attribute, length))
		if (!is_route || attribute->rta_type != RTA_CACHEINFO)
			routing_put(to, attribute, attribute->rta_len);
}

/* Returns 0, or -errno. If the kernel refuses a listing, the result is empty: the table has no route, or the kernel lacks the
 * family. */
static int routing_list(int fd, struct routing_request *ask, const struct routing_user *user,
			struct routing_octets *to)
{
	static char buffer[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
	if (send(fd, ask, ask->head.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		/* The kernel lists within the send and each recv, so this call never waits. */
		ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EPIPE;
		int left = (int)got;
		for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR)
				return 0;
			routing_take(m, user, to);
		}
	}
}

static int routing_both(int fd, int family, const struct routing_user *user, struct routing_octets *to)
{
	struct routing_request ask = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct fib_rule_hdr)),
			  .nlmsg_type = RTM_GETRULE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.route = { .rtm_family = family },
	};
	int result = routing_list(fd, &ask, user, to);
	if (result < 0)
		return result;
	ask.head.nlmsg_len = sizeof(ask);
	ask.head.nlmsg_type = RTM_GETROUTE;
	ask.attribute = (struct rtattr){ .rta_len = RTA_LENGTH(sizeof(ask.table)), .rta_type = RTA_TABLE };
	ask.table = user->table;
	return routing_list(fd, &ask, user, to);
}

/* routingRead(protocol, table, mark, last, into) -> how many octets were written, or -errno */
static napi_value routing_read(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct routing_octets to = { 0 };
	int strict = 1;
	struct routing_user user = { .protocol = integer(&call, 0),
				     .table = unsigned_integer(&call, 1),
				     .mark = unsigned_integer(&call, 2),
				     .last = unsigned_integer(&call, 3) };
	to.into = octets(&call, 4, 1, &to.size);
	if (call.bad)
		return NULL;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return number(env, -errno);
	/* With this option the kernel searches only the one table, and without it all tables. */
	setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &strict, sizeof(strict));
	int result = routing_both(fd, AF_INET, &user, &to);
	if (result == 0)
		result = routing_both(fd, AF_INET6, &user, &to);
	close(fd);
	return number(env, result < 0 ? result : (double)to.at);
}

#endif
