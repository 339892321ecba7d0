/* The name server behind every proxy, which the load also asks directly for comparison. It answers from the name alone.
 *   upstream ADDRESS PORT DELAY_US
 * A records of `k...` names: 198.18.0.0 + digits, TTL 300; of `n...` names: 11.0.0.0 + digits, TTL 1, so that every
 * name has a new address. Other names: NOERROR without records. UDP in batches by one thread,
 * TCP (pipelined, until the peer closes) by another. Prints `ready` when both are bound. A delay holds
 * only UDP answers, all for the same time and so in order, in a ring. */
#define _GNU_SOURCE
#include "wire.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING 65536
#define FRAMES 65536

struct held {
	uint64_t due;
	struct sockaddr_in to;
	uint16_t size;
	uint8_t octets[MESSAGE];
};

static int hex_of(uint8_t c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Turns a query in place into its answer (RFC 1035 4.1); returns the new size, 0 if it is no query. */
static size_t answer(uint8_t *m, size_t size)
{
	size_t at = QUESTION_AT;
	uint32_t number = 0;
	uint8_t kind;
	int known, with_opt;

	if (size < HEADER + 5 || (m[2] & 0x80) || get16(m + 4) != 1)
		return 0;
	while (at < size && m[at] != 0)
		at += (size_t)m[at] + 1;
	at += 5;
	if (at > size)
		return 0;
	kind = m[QUESTION_AT + 1] | 0x20;
	known = m[QUESTION_AT] == LABEL && (kind == 'k' || kind == 'n') && get16(m + at - 4) == 1;
	for (int i = 0; known && i < LABEL - 1; i++) {
		int digit = hex_of(m[QUESTION_AT + 2 + i]);

		known = digit >= 0;
		number = number << 4 | (uint32_t)(digit & 15);
	}
	with_opt = get16(m + 10) > 0;
	m[2] = (uint8_t)(0x80 | (m[2] & 1));
	m[3] = 0x80 | (m[3] & 0x10);
	put16(m + 6, known);
	put16(m + 8, 0);
	put16(m + 10, (unsigned)with_opt);
	if (known) {
		put16(m + at, 0xc000 | QUESTION_AT);
		put16(m + at + 2, 1);
		put16(m + at + 4, 1);
		put32(m + at + 6, kind == 'k' ? 300 : 1);
		put16(m + at + 10, 4);
		put32(m + at + 12, (kind == 'k' ? 0xc6120000u : 0x0b000000u) + number);
		at += 16;
	}
	if (with_opt) {
		put_opt(m + at);
		at += OPT;
	}
	return at;
}

static int open_socket(int type, const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	int on = 1, size = 8 << 20;

	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (type == SOCK_DGRAM) {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
		setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
	}
	if (bind(fd, (const struct sockaddr *)at, sizeof *at) < 0)
		fail("bind");
	if (type == SOCK_STREAM && listen(fd, 1024) < 0)
		fail("listen");
	return fd;
}

static void prepare(struct mmsghdr *batch, struct iovec *parts, struct sockaddr_in *peers, uint8_t (*slab)[MESSAGE])
{
	memset(batch, 0, sizeof *batch * BATCH);
	for (int i = 0; i < BATCH; i++) {
		parts[i].iov_base = slab[i];
		parts[i].iov_len = MESSAGE;
		batch[i].msg_hdr.msg_iov = &parts[i];
		batch[i].msg_hdr.msg_iovlen = 1;
		batch[i].msg_hdr.msg_name = &peers[i];
		batch[i].msg_hdr.msg_namelen = sizeof peers[i];
	}
}

/* Sends answers of one size to one peer together. An unreachable peer (ICMP) costs only its own answers. */
static void send_all(int fd, struct iovec *parts, struct sockaddr_in *peers, int count)
{
	for (int from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count; to++)
			if (parts[to].iov_len != parts[from].iov_len || peers[to].sin_port != peers[from].sin_port ||
			    peers[to].sin_addr.s_addr != peers[from].sin_addr.s_addr)
				break;
		if (parts[from].iov_len > 0)
			send_train(fd, &peers[from], parts + from, to - from);
	}
}

/* Sends held answers that are due; returns nanoseconds until the next one, or -1. */
static int64_t send_due(int fd, struct held *ring, uint32_t *tail, uint32_t head)
{
	while (*tail != head) {
		struct held *next = &ring[*tail % RING];
		uint64_t now = now_ns();

		if (next->due > now)
			return (int64_t)(next->due - now);
		sendto(fd, next->octets, next->size, 0, (struct sockaddr *)&next->to, sizeof next->to);
		++*tail;
	}
	return -1;
}

static void serve_udp(int fd, uint64_t delay)
{
	static uint8_t slab[BATCH][MESSAGE];
	static struct mmsghdr batch[BATCH];
	static struct iovec parts[BATCH];
	static struct sockaddr_in peers[BATCH];
	struct held *ring = delay ? calloc(RING, sizeof *ring) : NULL;
	uint32_t head = 0, tail = 0;

	prctl(PR_SET_TIMERSLACK, 1);
	prepare(batch, parts, peers, slab);
	for (;;) {
		if (delay) {
			struct pollfd poll_fd = {fd, POLLIN, 0};
			int64_t wait = send_due(fd, ring, &tail, head);
			struct timespec t = {wait / (int64_t)SECOND, wait % (int64_t)SECOND};

			if (ppoll(&poll_fd, 1, wait < 0 ? NULL : &t, NULL) <= 0)
				continue;
		}
		int got = recvmmsg(fd, batch, BATCH, MSG_WAITFORONE, NULL);

		for (int i = 0; i < got; i++) {
			size_t size = answer(slab[i], batch[i].msg_len);

			if (delay && size > 0 && head - tail < RING) {
				struct held *held = &ring[head++ % RING];

				held->due = now_ns() + delay;
				held->to = peers[i];
				held->size = (uint16_t)size;
				memcpy(held->octets, slab[i], size);
			}
			parts[i].iov_len = size;
		}
		if (!delay)
			send_all(fd, parts, peers, got);
		for (int i = 0; i < got; i++) {
			parts[i].iov_len = MESSAGE;
			batch[i].msg_hdr.msg_namelen = sizeof peers[i];
		}
	}
}

struct stream {
	int fd;
	size_t have;
	uint8_t in[FRAMES];
};

static int write_all(int fd, const uint8_t *octets, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, octets, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd poll_fd = {fd, POLLOUT, 0};

			poll(&poll_fd, 1, 1000);
			continue;
		}
		if (n <= 0)
			return -1;
		octets += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Answers the whole frames that have arrived (RFC 1035 4.2.2); -1 at the end of the connection. */
static int serve_stream(struct stream *s)
{
	static uint8_t out[2 * FRAMES];
	ssize_t n = recv(s->fd, s->in + s->have, FRAMES - s->have, 0);
	size_t at = 0, filled = 0;

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -1;
	s->have += (size_t)n;
	while (s->have - at >= 2) {
		size_t size = get16(s->in + at);
		size_t made;

		if (s->have - at < 2 + size)
			break;
		if (size > MESSAGE - 32 || filled + 2 + MESSAGE > sizeof out)
			return -1;
		memcpy(out + filled + 2, s->in + at + 2, size);
		made = answer(out + filled + 2, size);
		if (made == 0)
			return -1;
		put16(out + filled, (unsigned)made);
		filled += 2 + made;
		at += 2 + size;
	}
	memmove(s->in, s->in + at, s->have - at);
	s->have -= at;
	return write_all(s->fd, out, filled);
}

static void *serve_tcp(void *argument)
{
	int listener = *(int *)argument;
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {EPOLLIN, {.ptr = NULL}}, events[BATCH];

	epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int count = epoll_wait(set, events, BATCH, -1);

		for (int i = 0; i < count; i++) {
			struct stream *s = events[i].data.ptr;

			if (s == NULL) {
				int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;

				if (fd < 0 || (s = malloc(sizeof *s)) == NULL)
					continue;
				setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
				s->fd = fd;
				s->have = 0;
				event = (struct epoll_event){EPOLLIN, {.ptr = s}};
				epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
			} else if (serve_stream(s) < 0) {
				close(s->fd);
				free(s);
			}
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	pthread_t thread;
	int udp, tcp;

	if (argc != 4 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1) {
		fprintf(stderr, "usage: upstream ADDRESS PORT DELAY_US\n");
		return 2;
	}
	at.sin_port = htons((uint16_t)atoi(argv[2]));
	udp = open_socket(SOCK_DGRAM, &at);
	tcp = open_socket(SOCK_STREAM, &at);
	if (pthread_create(&thread, NULL, serve_tcp, &tcp) != 0)
		fail("pthread_create");
	puts("ready");
	fflush(stdout);
	serve_udp(udp, strtoull(argv[3], NULL, 10) * 1000);
	return 0;
}
