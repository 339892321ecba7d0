/* This file lists the addresses of all interfaces, also of those that are down or without carrier, and reports when they change. */
#ifndef NAMEGATE_ADDRESSES_H
#define NAMEGATE_ADDRESSES_H

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../addon.h"
#include "links.h"

/* The family is given, because a netmask can have another one in its own field. */
static const void *octets_of(const struct sockaddr *address, int family)
{
	return family == AF_INET ? (const void *)&((const struct sockaddr_in *)address)->sin_addr :
				   (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
}

static int ones_of(const struct sockaddr *mask, int family)
{
	const unsigned char *octets = octets_of(mask, family);
	int ones = 0;
	for (int i = 0; i < (family == AF_INET ? 4 : 16); i++)
		ones += __builtin_popcount(octets[i]);
	return ones;
}

/* ifAddresses() -> [address, prefix length, broadcast address or "", ...], or -errno */
static napi_value if_addresses(napi_env env, napi_callback_info info)
{
	(void)info;
	struct ifaddrs *all;
	char name[INET6_ADDRSTRLEN];
	napi_value list;
	uint32_t at = 0;
	if (getifaddrs(&all) < 0)
		return number(env, -errno);
	napi_create_array(env, &list);
	for (struct ifaddrs *each = all; each; each = each->ifa_next) {
		const struct sockaddr *address = each->ifa_addr, *broadcast = each->ifa_broadaddr;
		if (!address || !each->ifa_netmask || (address->sa_family != AF_INET && address->sa_family != AF_INET6))
			continue;
		inet_ntop(address->sa_family, octets_of(address, address->sa_family), name, sizeof(name));
		napi_set_element(env, list, at++, string(env, name));
		napi_set_element(env, list, at++, number(env, ones_of(each->ifa_netmask, address->sa_family)));
		name[0] = 0;
		if (address->sa_family == AF_INET && (each->ifa_flags & IFF_BROADCAST) && broadcast &&
		    broadcast->sa_family == AF_INET)
			inet_ntop(AF_INET, octets_of(broadcast, AF_INET), name, sizeof(name));
		napi_set_element(env, list, at++, string(env, name));
	}
	freeifaddrs(all);
	return list;
}

/* addressSocket() -> fd of a netlink socket that receives a message per address that is added or removed, or -errno */
static napi_value address_socket(napi_env env, napi_callback_info info)
{
	(void)info;
	return route_events(env, RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
}

/* addressesChanged(fd) -> 1 if addresses changed since the last call or messages were lost, else 0 */
static napi_value addresses_changed(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	char message[64];
	int changed = 0;
	if (call.bad)
		return NULL;
	for (;;) {
		ssize_t got = recv(fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != ENOBUFS)
			return number(env, changed || errno != EAGAIN);
		changed = 1;
	}
}

#endif
