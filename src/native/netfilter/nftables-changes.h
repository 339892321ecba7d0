/* This file receives the changes that other processes make to a table. The kernel reports each transaction, element by element,
 * with the number of the socket that sent it. A filter drops the reports of namegate's own sockets before they take room.
 * nftables.c includes this file. */
#ifndef NAMEGATE_NFTABLES_CHANGES_H
#define NAMEGATE_NFTABLES_CHANGES_H

#include "nftables-table.h"

/* One message is shorter than this. A call returns as many messages as fit into the caller's octets. */
#define CHANGE_ROOM 16384

/* Installs the filter. Returns 0, or -errno. All messages of a datagram belong to one transaction. Their headers name the socket,
 * which the filter reads in network order. */
static int leave_out(int fd, const int *sockets, int count)
{
	struct sock_filter program[8] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_pid)) };
	int length = 1;
	for (int i = 0; i < count; i++) {
		struct sockaddr_nl own;
		socklen_t size = sizeof(own);
		if (getsockname(sockets[i], (struct sockaddr *)&own, &size) < 0)
			return -errno;
		program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(own.nl_pid), 0, 1);
		program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	}
	program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	struct sock_fprog filter = { .len = (unsigned short)length, .filter = program };
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ? -errno : 0;
}

/* nlWatch(fd, own fd, own fd) -> 0, or -errno. `fd` is a socket of nlOpen. It then receives the changes of every socket except
 * the two own sockets. */
static napi_value nl_watch(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0), own[2] = { integer(&call, 1), integer(&call, 2) }, group = NFNLGRP_NFTABLES;
	if (call.bad)
		return NULL;
	int failed = leave_out(fd, own, 2);
	if (!failed && setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
		failed = -errno;
	return number(env, failed);
}

/* nlChanges(fd, table, into) -> octets of messages about tables of this name, 0 without messages, -ENOBUFS if messages were lost,
 * or -errno. `into` has at least twice CHANGE_ROOM octets. The next call reads the remaining messages. */
static napi_value nl_changes(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	char buffer[CHANGE_ROOM] __attribute__((aligned(NLMSG_ALIGNTO))), table[NFT_NAME_MAXLEN];
	size_t room, size = 0;
	text(&call, 1, table, sizeof(table));
	char *into = octets(&call, 2, 2 * CHANGE_ROOM, &room);
	if (call.bad)
		return NULL;
	while (size + CHANGE_ROOM <= room) {
		ssize_t got = netlink_receive(fd, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_TRUNC);
		if (got == -EAGAIN)
			break;
		if (got <= 0)
			return number(env, got < 0 ? (double)got : -EPIPE);
		if (got > CHANGE_ROOM)
			return number(env, -ENOBUFS);
		int left = (int)got;
		for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			if (!is_of_table(m, table))
				continue;
			memcpy(into + size, m, m->nlmsg_len);
			size += NLMSG_ALIGN(m->nlmsg_len);
		}
	}
	return number(env, (double)size);
}

#endif
