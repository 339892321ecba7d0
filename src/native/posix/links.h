/* This file reads the numbers, types and masters of network interfaces, and receives interface events over netlink. */
#ifndef NAMEGATE_LINKS_H
#define NAMEGATE_LINKS_H

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../addon.h"
#include "../watch.h"

/* ifIndex(name) -> the index, or -ENODEV */
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

/* ifType(name) -> ARPHRD_* of if_arp.h, or -errno */
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

/* ifList() -> [index, name, index, name, ...] of all interfaces, or -errno */
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

/* ifMaster(index) -> the index of the interface's master, such as a bridge, 0 without a master, or -errno */
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

/* Returns the fd of a netlink socket that receives the events of `groups` (rtnetlink(7)), or -errno. */
static napi_value route_events(napi_env env, unsigned int groups)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = groups };
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

/* linkSocket() -> fd of a netlink socket that receives events of interfaces and of removed filters, or -errno */
static napi_value link_socket(napi_env env, napi_callback_info info)
{
	(void)info;
	return route_events(env, RTMGRP_LINK | RTMGRP_TC);
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

/* If the message reports that a filter or a qdisc was removed, returns the interface's index and its current name, else 0. */
static int bare_link(struct nlmsghdr *message, char name[IF_NAMESIZE])
{
	struct tcmsg *filter = NLMSG_DATA(message);
	if (message->nlmsg_type != RTM_DELTFILTER && message->nlmsg_type != RTM_DELQDISC)
		return 0;
	return if_indextoname(filter->tcm_ifindex, name) ? filter->tcm_ifindex : 0;
}

/* linkDrain(fd) -> [index, name, index, name, ...] of interfaces that appeared, changed, disappeared or lost a filter. A negative
 * errno means that events were lost, so the caller must look at all interfaces. */
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

static void drop_watch(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)data;
	(void)hint;
}

/* linkWatch(fd, function, keeps) -> a handle, or -errno. The event loop calls the function while `fd` is readable. The watch
 * keeps the process alive only if `keeps` is 1. The caller holds the handle, and ends the watch before it closes `fd`. */
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

/* linkUnwatch(handle) -> 0. Call linkUnwatch exactly once for each handle. */
static napi_value link_unwatch(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	void *watch = NULL;
	if (call.bad || call.count < 1 || napi_get_value_external(env, call.values[0], &watch) != napi_ok || !watch)
		return number(env, -EINVAL);
	watch_stop(watch);
	return number(env, 0);
}

#endif
