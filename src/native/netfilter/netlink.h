/* These functions send octets to the kernel over a netlink socket, and receive the kernel's answers. A signal interrupts neither
 * function. */
#ifndef NAMEGATE_NETLINK_H
#define NAMEGATE_NETLINK_H

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

/* Returns 0, or -errno. */
static inline int netlink_send(int fd, const void *octets, size_t size)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t sent;
	do
		sent = sendto(fd, octets, size, 0, (struct sockaddr *)&kernel, sizeof(kernel));
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Returns how many octets were received, or -errno. `flags` are MSG_* of recv(2). */
static inline ssize_t netlink_receive(int fd, void *into, size_t room, int flags)
{
	ssize_t got;
	do
		got = recv(fd, into, room, flags);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

#endif
