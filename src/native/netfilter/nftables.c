/* This addon has the netlink sockets of the nftables datapath. It sends batches of messages and receives answers, and TypeScript
 * encodes and reads both. The kernel applies a batch within `sendmsg`, so the answers can be read when `sendmsg` returns. One
 * thread applies batches (nftables-worker.h), and another thread reads long listings (nftables-reader.h). nftables-changes.h
 * reads what other processes changed.
 *
 * Results are pairs of u32: the sequence number of a message, and the errno with which the kernel refused it. The errno is 0 for
 * an acknowledgement. Sequence 0 with ENOBUFS means that answers were lost. A failed call returns a negative errno. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../watch.h"
#include "netlink.h"

#define ROOM 65536
#define ANSWER_SECONDS 10
/* Most results of one batch. Further refusals of that batch are not reported. */
#define RESULTS 1024

struct results {
	uint32_t pairs[RESULTS * 2];
	size_t count;
};

static void add_result(struct results *results, uint32_t sequence, uint32_t error)
{
	if (results->count == RESULTS)
		return;
	results->pairs[results->count * 2] = sequence;
	results->pairs[results->count++ * 2 + 1] = error;
}

/* Reads every answer that has arrived. The kernel has finished a batch when `sendmsg` returns. */
static void read_results(int fd, char *buffer, struct results *results)
{
	for (;;) {
		ssize_t got = netlink_receive(fd, buffer, ROOM, MSG_DONTWAIT);
		if (got == -ENOBUFS) {
			add_result(results, 0, ENOBUFS);
			continue;
		}
		if (got <= 0)
			return;
		int left = (int)got;
		for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left))
			if (m->nlmsg_type == NLMSG_ERROR && m->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)))
				add_result(results, m->nlmsg_seq, -((struct nlmsgerr *)NLMSG_DATA(m))->error);
	}
}

#include "nftables-reader.h"
#include "nftables-changes.h"

static bool is_refused(const struct results *results)
{
	for (size_t i = 0; i < results->count; i++)
		if (results->pairs[i * 2 + 1])
			return true;
	return false;
}

/* Octets up to the end of the first batch, or all octets if no batch ends. */
static size_t first_batch(const char *octets, size_t size)
{
	for (size_t at = 0; at + sizeof(struct nlmsghdr) <= size;) {
		const struct nlmsghdr *m = (const struct nlmsghdr *)(octets + at);
		if (m->nlmsg_len < sizeof(*m))
			break;
		at += NLMSG_ALIGN(m->nlmsg_len);
		if (m->nlmsg_type == NFNL_MSG_BATCH_END && at <= size)
			return at;
	}
	return size;
}

/* Sends batch after batch, because the kernel reads only one batch of each datagram. Stops at the first refusal. */
static int request(int fd, const char *octets, size_t size, char *buffer, struct results *results)
{
	int sent = 0;
	results->count = 0;
	/* Drop what an earlier request left unread. */
	while (netlink_receive(fd, buffer, ROOM, MSG_DONTWAIT) > 0)
		;
	while (size > 0 && sent == 0 && !is_refused(results)) {
		size_t one = first_batch(octets, size);
		sent = netlink_send(fd, octets, one);
		if (sent == 0)
			read_results(fd, buffer, results);
		octets += one;
		size -= one;
	}
	return sent;
}

/* nlOpen(buffer octets) -> fd, or -errno. A batch must fit into the buffer. Without the right to force the size, the buffer is
 * smaller. */
static napi_value nl_open(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int size = integer(&call, 0), big = size;
	struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	if (call.bad)
		return NULL;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (fd < 0)
		return number(env, -errno);
	/* The kernel chooses the number that names this socket in change events. */
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0) {
		int result = -errno;
		close(fd);
		return number(env, result);
	}
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return number(env, fd);
}

/* nlRoom(fd) -> most octets of one batch, or -errno */
static napi_value nl_room(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0), size = 0;
	socklen_t length = sizeof(size);
	if (call.bad)
		return NULL;
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &length) < 0)
		return number(env, -errno);
	return number(env, size - 64);
}

static napi_value hand_over(napi_env env, const struct results *results, uint32_t *into, size_t room)
{
	size_t count = results->count < room / 8 ? results->count : room / 8;
	memcpy(into, results->pairs, count * 8);
	return number(env, (double)count);
}

/* nlRequest(fd, octets, size, results) -> the number of results, or -errno. Applies several batches one after the other. */
static napi_value nl_request(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t size = unsigned_integer(&call, 2);
	const void *data = octets(&call, 1, size, NULL);
	size_t room;
	uint32_t *into = octets(&call, 3, 8, &room);
	if (call.bad)
		return NULL;
	char *buffer = malloc(ROOM);
	struct results *results = malloc(sizeof(*results));
	int sent = buffer && results ? request(fd, data, size, buffer, results) : -ENOMEM;
	napi_value result = sent < 0 ? number(env, sent) : hand_over(env, results, into, room);
	free(buffer);
	free(results);
	return result;
}

/* nlSend(fd, octets, size) -> 0, or -errno. nlReceive reads the answers. */
static napi_value nl_send(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	uint32_t size = unsigned_integer(&call, 2);
	const void *data = octets(&call, 1, size, NULL);
	if (call.bad)
		return NULL;
	return number(env, netlink_send(fd, data, size));
}

/* nlReceive(fd, into, wait) -> octets read, -EAGAIN if there are none, or -errno */
static napi_value nl_receive(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	int fd = integer(&call, 0);
	size_t room;
	void *into = octets(&call, 1, 1, &room);
	int wait = integer(&call, 2);
	if (call.bad)
		return NULL;
	return number(env, netlink_receive(fd, into, room, wait ? 0 : MSG_DONTWAIT));
}

#include "nftables-worker.h"

NAPI_MODULE_INIT()
{
	static const struct export list[] = {
		{ "nlOpen", nl_open },	     { "nlRoom", nl_room },	{ "nlClose", close_fd },
		{ "nlRequest", nl_request }, { "nlSend", nl_send },	{ "nlReceive", nl_receive },
		{ "nlWorker", nl_worker },   { "nlSubmit", nl_submit }, { "nlTake", nl_take },
		{ "nlEnd", nl_end },	     { "nlReader", nl_reader },	{ "nlPart", nl_part },
		{ "nlReaderEnd", nl_reader_end }, { "nlWatch", nl_watch }, { "nlChanges", nl_changes }, { NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
