/* This file fills addresses and sets flags, for both listening and connecting sockets. */
#ifndef NAMEGATE_TCP_SOCKET_H
#define NAMEGATE_TCP_SOCKET_H

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "../addon.h"

static socklen_t fill_address(struct sockaddr_storage *into, int family, const uint8_t *octets16, uint32_t port)
{
	memset(into, 0, sizeof(*into));
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)into;
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		memcpy(&in->sin_addr, octets16, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)into;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)port);
	memcpy(&in6->sin6_addr, octets16, 16);
	return sizeof(*in6);
}

static int set_flag(int fd, int level, int option)
{
	int on = 1;
	return setsockopt(fd, level, option, &on, sizeof(on));
}

static int family_of(struct call *call, size_t index)
{
	uint32_t family = unsigned_integer(call, index);
	if (family != 4 && family != 6)
		refuse(call, "4 or 6", index);
	return family == 4 ? AF_INET : AF_INET6;
}

#endif
