/* This file finds the host side of the pod's veth. The kernel decides which it is: the peer of the interface CNI_IFNAME in the
 * network namespace CNI_NETNS. The peer must be a veth of this network namespace, and its own peer must be the pod's interface.
 * prevResult.interfaces is not enough, because it can also list bridges and other interfaces of the host. */
#ifndef NAMEGATE_CNI_VETH_H
#define NAMEGATE_CNI_VETH_H

#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "../native/netfilter/netlink.h"
#include "cni.h"

#define LINK_ROOM 32768

/* An interface. `namespace` is the kernel's id of the peer's network namespace, -1 if the peer is in the same one. */
struct link {
	int index, peer, namespace;
	char name[IFNAMSIZ], kind[16];
};

/* A message to the kernel: a header, a fixed part and attributes. */
struct message {
	struct nlmsghdr head;
	char rest[512];
};

static void *begin_message(struct message *message, int type, int flags, size_t fixed)
{
	memset(message, 0, sizeof(*message));
	message->head = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(fixed), .nlmsg_type = (uint16_t)type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) };
	return NLMSG_DATA(&message->head);
}

static struct rtattr *add_attribute(struct message *message, int type, const void *value, size_t size)
{
	struct rtattr *attribute = (struct rtattr *)((char *)message + NLMSG_ALIGN(message->head.nlmsg_len));
	attribute->rta_type = (uint16_t)type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(size);
	if (size > 0)
		memcpy(RTA_DATA(attribute), value, size);
	message->head.nlmsg_len = NLMSG_ALIGN(message->head.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
	return attribute;
}

/* Sends a message and reads the one answer into `into`. Returns the size of the answer, or -errno. */
static int exchange(int fd, struct message *message, void *into, size_t room)
{
	struct nlmsghdr *head = into;
	int error = netlink_send(fd, message, message->head.nlmsg_len);
	if (error < 0)
		return error;
	ssize_t got = netlink_receive(fd, into, room, 0);
	if (got < 0)
		return (int)got;
	if (!NLMSG_OK(head, (size_t)got))
		return -EBADMSG;
	return head->nlmsg_type == NLMSG_ERROR ? ((struct nlmsgerr *)NLMSG_DATA(head))->error : (int)head->nlmsg_len;
}

static void read_kind(struct rtattr *info, char *kind, size_t room)
{
	int left = RTA_PAYLOAD(info);
	for (struct rtattr *each = RTA_DATA(info); RTA_OK(each, left); each = RTA_NEXT(each, left))
		if (each->rta_type == IFLA_INFO_KIND)
			snprintf(kind, room, "%.*s", (int)RTA_PAYLOAD(each), (char *)RTA_DATA(each));
}

/* Reads an interface by its name, or with NULL by its index. Returns 0, or -errno. */
static int read_link(int fd, const char *name, int index, struct link *link)
{
	static char octets[LINK_ROOM];
	struct message message;
	struct ifinfomsg *fixed = begin_message(&message, RTM_GETLINK, 0, sizeof(*fixed));
	fixed->ifi_index = index;
	if (name)
		add_attribute(&message, IFLA_IFNAME, name, strlen(name) + 1);
	int size = exchange(fd, &message, octets, sizeof(octets));
	if (size < 0)
		return size;
	struct nlmsghdr *head = (struct nlmsghdr *)octets;
	if (head->nlmsg_type != RTM_NEWLINK || head->nlmsg_len < NLMSG_LENGTH(sizeof(*fixed)))
		return -EBADMSG;
	fixed = NLMSG_DATA(head);
	*link = (struct link){ .index = fixed->ifi_index, .namespace = -1 };
	int left = (int)IFLA_PAYLOAD(head);
	for (struct rtattr *each = IFLA_RTA(fixed); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
		if (each->rta_type == IFLA_IFNAME)
			snprintf(link->name, sizeof(link->name), "%.*s", (int)RTA_PAYLOAD(each), (char *)RTA_DATA(each));
		else if (each->rta_type == IFLA_LINK && RTA_PAYLOAD(each) >= sizeof(int))
			memcpy(&link->peer, RTA_DATA(each), sizeof(int));
		else if (each->rta_type == IFLA_LINK_NETNSID && RTA_PAYLOAD(each) >= sizeof(int))
			memcpy(&link->namespace, RTA_DATA(each), sizeof(int));
		else if (each->rta_type == IFLA_LINKINFO)
			read_kind(each, link->kind, sizeof(link->kind));
	}
	return 0;
}

/* Returns the kernel's id of a network namespace as this network namespace sees it, or -1. */
static int namespace_id(int fd, int namespace)
{
	char octets[1024];
	struct message message;
	uint32_t descriptor = (uint32_t)namespace;
	int id = -1;
	begin_message(&message, RTM_GETNSID, 0, sizeof(struct rtgenmsg));
	add_attribute(&message, NETNSA_FD, &descriptor, sizeof(descriptor));
	if (exchange(fd, &message, octets, sizeof(octets)) < 0)
		return -1;
	struct nlmsghdr *head = (struct nlmsghdr *)octets;
	size_t skip = NLMSG_ALIGN(sizeof(struct rtgenmsg));
	int left = (int)NLMSG_PAYLOAD(head, skip);
	for (struct rtattr *each = (struct rtattr *)((char *)NLMSG_DATA(head) + skip); RTA_OK(each, left); each = RTA_NEXT(each, left))
		if (each->rta_type == NETNSA_NSID && RTA_PAYLOAD(each) >= sizeof(int))
			memcpy(&id, RTA_DATA(each), sizeof(int));
	return id;
}

static int open_netlink(void)
{
	struct timeval limit = { .tv_sec = SECONDS_DEFAULT };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

/* Opens a netlink socket in another network namespace, and comes back. */
static int open_netlink_in(int namespace)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (own < 0 || setns(namespace, CLONE_NEWNET) < 0)
		return -1;
	int fd = open_netlink();
	if (setns(own, CLONE_NEWNET) < 0)
		return -1;
	close(own);
	return fd;
}

/* Finds the host side of the pod's interface. `host` is a netlink socket of this network namespace. */
static struct link find_host_side(int host)
{
	struct link inside, outside;
	const char *path = variable("CNI_NETNS"), *name = variable("CNI_IFNAME");
	int namespace = open(path, O_RDONLY | O_CLOEXEC);
	if (namespace < 0)
		fail(errno == ENOENT ? CODE_NO_CONTAINER : CODE_ENVIRONMENT, "the network namespace of the pod cannot be opened", "CNI_NETNS %s: %s", path,
		     strerror(errno));
	int pod = strlen(name) < IFNAMSIZ ? open_netlink_in(namespace) : -1;
	if (pod < 0 || host < 0)
		fail(CODE_ENVIRONMENT, "the network namespace of the pod cannot be entered", "CNI_NETNS %s, CNI_IFNAME %s: %s: run namegate-cni as root", path, name,
		     strerror(errno));
	int error = read_link(pod, name, 0, &inside);
	if (error < 0)
		fail(CODE_ENVIRONMENT, "the interface of the pod cannot be read", "CNI_IFNAME %s in CNI_NETNS %s: %s", name, path, strerror(-error));
	close(pod);
	if (strcmp(inside.kind, "veth") != 0)
		fail(CODE_REFUSED, "the interface of the pod is no veth",
		     "CNI_IFNAME %s: found kind '%s', expected veth: namegate cannot judge the packets of other kinds on the host", name, inside.kind);
	if (inside.peer <= 0 || read_link(host, NULL, inside.peer, &outside) < 0 || strcmp(outside.kind, "veth") != 0 || outside.peer != inside.index ||
	    outside.namespace < 0 || outside.namespace != namespace_id(host, namespace))
		fail(CODE_REFUSED, "the host side of the pod's veth is not in this network namespace",
		     "CNI_IFNAME %s has its other side in another network namespace, where namegate cannot judge its packets", name);
	close(namespace);
	return outside;
}

#endif
