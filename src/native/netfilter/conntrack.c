/* This addon uses the kernel's connection table over ctnetlink. It lists the table, deletes one entry, and finds the address that
 * an entry's client originally asked for. It also reports changed rules of nftables. conntrack.ts decides which entries matter.
 * The addon needs CAP_NET_ADMIN in the network namespace. A failed call returns a negative errno. No call waits longer than
 * ANSWER_SECONDS for the kernel. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../addon.h"
#include "conntrack-message.h"
#include "nftables-table.h"

/* One read returns fewer records than LEAST, because a message has more than 100 octets. */
#define LEAST 512
#define ANSWER_SECONDS 2

/* ctOpen() -> fd of a netlink socket, or -errno */
static napi_value ct_open(napi_env env, napi_callback_info info)
{
	(void)info;
	struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (fd < 0)
		return number(env, -errno);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return number(env, fd);
}

/* ctDump(fd) -> 0, or -errno. Requests a listing of both families, which ctNext reads. */
static napi_value ct_dump(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	struct request request;
	if (call.bad)
		return NULL;
	begin(&request, 0, IPCTNL_MSG_CT_GET, NLM_F_DUMP);
	return number(env, send_request(fd, &request));
}

/* ctNext(fd, into) -> the number of records read, 0 at the end, or -errno. `into` has room for LEAST records. */
static napi_value ct_next(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint8_t *into = octets(&call, 1, (size_t)LEAST * RECORD, NULL);
	char buffer[ROOM] __attribute__((aligned(NLMSG_ALIGNTO)));
	if (call.bad)
		return NULL;
	for (;;) {
		ssize_t got = netlink_receive(fd, buffer, ROOM, 0);
		if (got < 0)
			return number(env, got);
		int left = (int)got, count = 0;
		for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_type == NLMSG_DONE)
				return number(env, count);
			if (m->nlmsg_type == NLMSG_ERROR)
				return number(env, error_in(m));
			if (m->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nfgenmsg)) && count < LEAST)
				read_record(m, into + (size_t)RECORD * count++);
		}
		if (count > 0)
			return number(env, count);
	}
}

/* ctDelete(fd, record) -> 0, -ENOENT if the entry is gone or another entry took its place, or -errno */
static napi_value ct_delete(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	const uint8_t *record = octets(&call, 1, RECORD, NULL);
	struct request request;
	char buffer[ROOM] __attribute__((aligned(NLMSG_ALIGNTO)));
	uint16_t ports[2], zone;
	if (call.bad)
		return NULL;
	memcpy(ports, record + PORTS, sizeof(ports));
	memcpy(&zone, record + 12, sizeof(zone));
	begin(&request, record[1], IPCTNL_MSG_CT_DELETE, NLM_F_ACK);
	put_tuple(&request, CTA_TUPLE_ORIG, record[1], record[0], record + TUPLE, record + TUPLE + 16, ports[0], ports[1]);
	put(&request, CTA_ID, record + 8, 4);
	if (zone) {
		zone = htons(zone);
		put(&request, CTA_ZONE, &zone, sizeof(zone));
	}
	int result = send_request(fd, &request);
	if (result < 0)
		return number(env, result);
	ssize_t got = netlink_receive(fd, buffer, ROOM, 0);
	const struct nlmsghdr *m = (const struct nlmsghdr *)buffer;
	if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return number(env, got < 0 ? got : -EPROTO);
	return number(env, m->nlmsg_type == NLMSG_ERROR ? error_in(m) : -EPROTO);
}

/* ctFind(fd, record) -> 0, -ENOENT, or -errno. Finds the entry with the reply tuple, protocol and family of `record`, and
 * completes the record. */
static napi_value ct_find(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint8_t *record = octets(&call, 1, RECORD, NULL);
	struct request request;
	char buffer[ROOM] __attribute__((aligned(NLMSG_ALIGNTO)));
	uint16_t ports[2];
	if (call.bad)
		return NULL;
	memcpy(ports, record + PORTS + 4, sizeof(ports));
	begin(&request, record[1], IPCTNL_MSG_CT_GET, 0);
	put_tuple(&request, CTA_TUPLE_REPLY, record[1], record[0], record + REPLY_TUPLE, record + REPLY_TUPLE + 16,
		  ports[0], ports[1]);
	int result = send_request(fd, &request);
	if (result < 0)
		return number(env, result);
	ssize_t got = netlink_receive(fd, buffer, ROOM, 0);
	const struct nlmsghdr *m = (const struct nlmsghdr *)buffer;
	if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct nfgenmsg)))
		return number(env, got < 0 ? got : -EPROTO);
	if (m->nlmsg_type == NLMSG_ERROR)
		return number(env, error_in(m) < 0 ? error_in(m) : -EPROTO);
	if (m->nlmsg_len > (size_t)got)
		return number(env, -EPROTO);
	read_record(m, record);
	return number(env, 0);
}

/* rulesWatch() -> fd of a socket that receives an event when rules of nftables change, or -errno */
static napi_value rules_watch(napi_env env, napi_callback_info info)
{
	(void)info;
	int group = NFNLGRP_NFTABLES;
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
	if (fd < 0)
		return number(env, -errno);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
		int result = -errno;
		close(fd);
		return number(env, result);
	}
	return number(env, fd);
}

/* rulesChanged(fd, table) -> 1 if a table of this name changed since the last call, 0 if not, or -errno. It also returns 1 if
 * events were lost. */
static napi_value rules_changed(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	char buffer[ROOM] __attribute__((aligned(NLMSG_ALIGNTO))), table[NFT_NAME_MAXLEN];
	int changed = 0;
	text(&call, 1, table, sizeof(table));
	if (call.bad)
		return NULL;
	for (;;) {
		ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_TRUNC);
		if (got > (ssize_t)sizeof(buffer) || (got < 0 && errno == ENOBUFS))
			changed = 1;
		else if (got > 0) {
			int left = (int)got;
			for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left))
				changed |= is_of_table(m, table);
		} else if (got < 0 && errno == EAGAIN)
			return number(env, changed);
		else if (got == 0 || errno != EINTR)
			return number(env, got < 0 ? -errno : -EPIPE);
	}
}

/* rulesGeneration() -> the number of the last nftables transaction in this network namespace, or -errno */
static napi_value rules_generation(napi_env env, napi_callback_info info)
{
	(void)info;
	struct request request;
	char buffer[LEAST] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *m = (const struct nlmsghdr *)buffer;
	const struct nlattr *id = (const struct nlattr *)(buffer + NLMSG_LENGTH(sizeof(struct nfgenmsg)));
	uint32_t generation;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (fd < 0)
		return number(env, -errno);
	begin(&request, 4, NFT_MSG_GETGEN, 0);
	request.header.nlmsg_type = (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETGEN;
	request.family.nfgen_family = AF_UNSPEC;
	ssize_t got = send_request(fd, &request);
	if (got >= 0)
		got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	if (got < 0)
		got = -errno;
	close(fd);
	if (got < 0)
		return number(env, got);
	if (m->nlmsg_type == NLMSG_ERROR)
		return number(env, error_in(m) < 0 ? error_in(m) : -EPROTO);
	if (got < (ssize_t)(NLMSG_LENGTH(sizeof(struct nfgenmsg)) + NLA_HDRLEN + sizeof(generation)) ||
	    (id->nla_type & NLA_TYPE_MASK) != NFTA_GEN_ID)
		return number(env, -EPROTO);
	memcpy(&generation, (const char *)id + NLA_HDRLEN, sizeof(generation));
	return number(env, ntohl(generation));
}

NAPI_MODULE_INIT()
{
	static const struct export list[] = {
		{ "ctOpen", ct_open },	   { "ctClose", close_fd },   { "ctDump", ct_dump }, { "ctNext", ct_next },
		{ "ctDelete", ct_delete }, { "ctFind", ct_find },   { "rulesWatch", rules_watch },
		{ "rulesChanged", rules_changed }, { "rulesGeneration", rules_generation }, { NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
