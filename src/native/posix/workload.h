/* This file finds the interface of this network namespace behind which an address of a local workload is. The route to the address leads
 * to it: directly, or through a bridge. The kernel's tables of neighbours and of the bridge then have the bridge's port. Only the host
 * side of a veth or netkit pair counts, so that no mistake in routing can take an uplink for a workload. posix.c includes this file. */
#ifndef NAMEGATE_WORKLOAD_H
#define NAMEGATE_WORKLOAD_H

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../addon.h"

#define WORKLOAD_REPLY_SIZE 16384
#define LLADDR_SIZE 6

/* A request with one family header and at most two attributes. */
struct workload_request {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct ifinfomsg link;
		struct ndmsg neighbour;
	} as;
	uint8_t attributes[64];
};

/* The reply of the kernel to one request. */
static uint8_t workload_reply[WORKLOAD_REPLY_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));

static void workload_begin(struct workload_request *ask, int type, size_t size)
{
	memset(ask, 0, sizeof(*ask));
	ask->head.nlmsg_len = NLMSG_LENGTH(size);
	ask->head.nlmsg_type = type;
	ask->head.nlmsg_flags = NLM_F_REQUEST;
}

static void workload_put(struct workload_request *ask, int type, const void *data, size_t size)
{
	struct rtattr *attribute = (struct rtattr *)((uint8_t *)ask + NLMSG_ALIGN(ask->head.nlmsg_len));
	attribute->rta_type = type;
	attribute->rta_len = RTA_LENGTH(size);
	memcpy(RTA_DATA(attribute), data, size);
	ask->head.nlmsg_len = NLMSG_ALIGN(ask->head.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
}

/* Returns the reply; NULL when the kernel refused the request, with errno set. */
static struct nlmsghdr *workload_ask(int fd, const struct workload_request *ask)
{
	ssize_t got;
	if (send(fd, ask, ask->head.nlmsg_len, 0) < 0)
		return NULL;
	/* The kernel replies within the send, so this call never waits. */
	do
		got = recv(fd, workload_reply, sizeof(workload_reply), MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	struct nlmsghdr *reply = (struct nlmsghdr *)workload_reply;
	if (got < 0)
		return NULL;
	if (!NLMSG_OK(reply, (int)got)) {
		errno = EPIPE;
		return NULL;
	}
	if (reply->nlmsg_type == NLMSG_ERROR) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(reply))->error;
		return NULL;
	}
	return reply;
}

/* Returns the attribute of a type in a reply whose family header has `size` octets; NULL without one. */
static const struct rtattr *workload_find(const struct nlmsghdr *reply, size_t size, int type)
{
	int left = (int)reply->nlmsg_len - (int)NLMSG_LENGTH(size);
	const struct rtattr *attribute = (const struct rtattr *)((const uint8_t *)reply + NLMSG_SPACE(size));
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		if ((attribute->rta_type & NLA_TYPE_MASK) == type)
			return attribute;
	return NULL;
}

/* Returns the interface of the route to an address without a gateway; 0 if there is none. */
static int workload_route(int fd, int family, const void *address, size_t size)
{
	struct workload_request ask;
	int index = 0;
	workload_begin(&ask, RTM_GETROUTE, sizeof(ask.as.route));
	ask.as.route.rtm_family = family;
	ask.as.route.rtm_dst_len = size * 8;
	workload_put(&ask, RTA_DST, address, size);
	const struct nlmsghdr *reply = workload_ask(fd, &ask);
	if (!reply || reply->nlmsg_type != RTM_NEWROUTE)
		return 0;
	const struct rtmsg *route = NLMSG_DATA(reply);
	const struct rtattr *out = workload_find(reply, sizeof(*route), RTA_OIF);
	if (route->rtm_type != RTN_UNICAST || !out || workload_find(reply, sizeof(*route), RTA_GATEWAY) ||
	    workload_find(reply, sizeof(*route), RTA_VIA))
		return 0;
	memcpy(&index, RTA_DATA(out), sizeof(index));
	return index;
}

/* Returns true if the interface is of the kind, such as "veth". */
static bool workload_is_kind(int fd, int index, const char *kind)
{
	struct workload_request ask;
	workload_begin(&ask, RTM_GETLINK, sizeof(ask.as.link));
	ask.as.link.ifi_index = index;
	const struct nlmsghdr *reply = workload_ask(fd, &ask);
	const struct rtattr *info = reply ? workload_find(reply, sizeof(struct ifinfomsg), IFLA_LINKINFO) : NULL;
	if (!info)
		return false;
	int left = RTA_PAYLOAD(info);
	for (const struct rtattr *part = RTA_DATA(info); RTA_OK(part, left); part = RTA_NEXT(part, left))
		if (part->rta_type == IFLA_INFO_KIND)
			return RTA_PAYLOAD(part) >= strlen(kind) && !strncmp(RTA_DATA(part), kind, RTA_PAYLOAD(part));
	return false;
}

/* Returns the port of a bridge behind which an address is; 0 while the kernel does not know it. */
static int workload_port(int fd, int bridge, int family, const void *address, size_t size)
{
	struct workload_request ask;
	uint8_t lladdr[LLADDR_SIZE];
	workload_begin(&ask, RTM_GETNEIGH, sizeof(ask.as.neighbour));
	ask.as.neighbour.ndm_family = family;
	ask.as.neighbour.ndm_ifindex = bridge;
	workload_put(&ask, NDA_DST, address, size);
	const struct nlmsghdr *reply = workload_ask(fd, &ask);
	const struct rtattr *found = reply ? workload_find(reply, sizeof(struct ndmsg), NDA_LLADDR) : NULL;
	if (!found || RTA_PAYLOAD(found) != sizeof(lladdr))
		return 0;
	memcpy(lladdr, RTA_DATA(found), sizeof(lladdr));
	workload_begin(&ask, RTM_GETNEIGH, sizeof(ask.as.neighbour));
	ask.as.neighbour.ndm_family = PF_BRIDGE;
	workload_put(&ask, NDA_LLADDR, lladdr, sizeof(lladdr));
	workload_put(&ask, NDA_MASTER, &bridge, sizeof(bridge));
	reply = workload_ask(fd, &ask);
	return reply ? ((const struct ndmsg *)NLMSG_DATA(reply))->ndm_ifindex : 0;
}

/* workloadInterface(octets) -> name of the interface, "" if there is none, or -errno */
static napi_value workload_interface(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	size_t size = 0;
	const void *address = octets(&call, 0, 4, &size);
	if (!call.bad && size != 4 && size != 16)
		refuse(&call, "an array of 4 or 16 octets", 0);
	if (call.bad)
		return NULL;
	int family = size == 4 ? AF_INET : AF_INET6;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return number(env, -errno);
	int index = workload_route(fd, family, address, size);
	if (index > 0 && workload_is_kind(fd, index, "bridge"))
		index = workload_port(fd, index, family, address, size);
	if (index > 0 && !workload_is_kind(fd, index, "veth") && !workload_is_kind(fd, index, "netkit"))
		index = 0;
	close(fd);
	char name[IF_NAMESIZE] = "";
	napi_value result;
	/* The interface can have gone meanwhile. */
	if (index > 0 && !if_indextoname(index, name))
		name[0] = 0;
	napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &result);
	return result;
}

#endif
