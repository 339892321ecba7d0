/* A steady stream of queries over a few TCP connections that stay open, each query asked once, and a server for it.
 * test/support/peers/steady-load.ts compiles and runs it. IPv4 only.
 *   steady-tcp load ADDRESS PORT RATE SECONDS PREFIX CONNECTIONS   RATE queries a second in all for n<i>.PREFIX.test A,
 *                                                                  until SIGTERM
 *   steady-tcp serve ADDRESS PORT                                  answers every query with one address
 * `load` waits up to 7 s for outstanding queries and prints how many were sent, answered, refused, and lost with a
 * connection that the server closed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "steady.h"

#define LINKS_MAX 64

struct link {
	int fd;
	uint32_t filled;
	uint8_t in[1 << 18];
};

static struct link links[LINKS_MAX];

static int open_socket(const char *address, int port, int serve)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address, &to.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if ((serve ? bind : connect)(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || (serve && listen(fd, 64) < 0)) {
		perror("address");
		exit(1);
	}
	return fd;
}

/* Reads the available octets; 0 if the other end closed. */
static int fill(struct link *link)
{
	for (;;) {
		ssize_t got = recv(link->fd, link->in + link->filled, sizeof(link->in) - link->filled, MSG_DONTWAIT);
		if (got < 0)
			return errno == EAGAIN || errno == EINTR;
		if (got == 0)
			return 0;
		link->filled += got;
	}
}

static void shift(struct link *link, uint32_t at)
{
	memmove(link->in, link->in + at, link->filled - at);
	link->filled -= at;
}

/* The next whole message at `at`, NULL if there is none. */
static uint8_t *message(struct link *link, uint32_t at, int *size)
{
	if (link->filled - at < 2)
		return NULL;
	*size = link->in[at] << 8 | link->in[at + 1];
	return link->filled - at < 2u + *size ? NULL : link->in + at + 2;
}

static int run_load(char **a)
{
	uint8_t query[512];
	struct pollfd polls[LINKS_MAX];
	int rate = atoi(a[4]), total = rate * atof(a[5]), count = atoi(a[7]);
	int sent = 0, noerror = 0, other = 0, closed = 0;
	int64_t begin, end = 0;

	for (int i = 0; i < count; i++)
		polls[i] = (struct pollfd){ .fd = links[i].fd = open_socket(a[2], atoi(a[3]), 0), .events = POLLIN };
	begin = now_us();
	signal(SIGTERM, end_load);
	for (;;) {
		int64_t now = now_us();
		if (ending)
			total = sent;
		while (sent < total && begin + sent * 1000000LL / rate <= now) {
			int size = write_framed(query, sent & 0xffff, sent % NAMES, a[6]);
			if (send(links[sent % count].fd, query, size, MSG_NOSIGNAL) < 0)
				perror("send");
			sent++;
		}
		if (sent == total && end == 0)
			end = now + 7000000;
		if (end != 0 && (noerror + other == total || now > end))
			break;
		poll(polls, count, 1);
		for (int i = 0; i < count; i++) {
			uint32_t at = 0;
			int size;
			uint8_t *m;
			if (polls[i].fd >= 0 && !fill(&links[i])) {
				polls[i].fd = -1;
				closed++;
			}
			for (; (m = message(&links[i], at, &size)); at += 2 + size) {
				if ((m[3] & 15) == 0)
					noerror++;
				else
					other++;
			}
			shift(&links[i], at);
		}
	}
	printf("{\"sent\":%d,\"noerror\":%d,\"other\":%d,\"closed\":%d}\n", sent, noerror, other, closed);
	return 0;
}

/* Answers a query in place, with room after it. */
static int answer(uint8_t *m)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18 };
	unsigned sum = 0;
	int at = 12;

	while (m[at] != 0) {
		sum = sum * 31 + m[at + 1] + m[at + m[at]] * 7;
		at += m[at] + 1;
	}
	at += 5;
	m[2] |= 0x80;
	m[3] = 0x80;
	memset(m + 6, 0, 6);
	m[7] = 1;
	memcpy(m + at, record, sizeof(record));
	m[at + sizeof(record)] = sum >> 8;
	m[at + sizeof(record) + 1] = sum;
	return at + sizeof(record) + 2;
}

static void run_serve(char **a)
{
	struct pollfd polls[LINKS_MAX + 1] = { { .fd = open_socket(a[2], atoi(a[3]), 1), .events = POLLIN } };

	for (int i = 1; i <= LINKS_MAX; i++)
		polls[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	puts("ready");
	fflush(stdout);
	for (;;) {
		poll(polls, LINKS_MAX + 1, 1000);
		for (int i = 1; i <= LINKS_MAX; i++) {
			struct link *link = &links[i - 1];
			uint8_t out[1024], *m;
			uint32_t at = 0;
			int size;
			if (polls[i].fd < 0)
				continue;
			int open = fill(link);
			for (; (m = message(link, at, &size)) && size < 500; at += 2 + size) {
				memcpy(out + 2, m, size);
				int length = answer(out + 2);
				out[0] = length >> 8;
				out[1] = length;
				if (send(link->fd, out, length + 2, MSG_NOSIGNAL) < 0)
					open = 0;
			}
			shift(link, at);
			if (open)
				continue;
			close(link->fd);
			polls[i].fd = -1;
		}
		for (int i = 1; i <= LINKS_MAX && (polls[0].revents & POLLIN); i++) {
			if (polls[i].fd >= 0)
				continue;
			links[i - 1].filled = 0;
			polls[i].fd = links[i - 1].fd = accept(polls[0].fd, NULL, NULL);
			break;
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 8 && strcmp(argv[1], "load") == 0)
		return run_load(argv);
	if (argc == 4 && strcmp(argv[1], "serve") == 0)
		run_serve(argv);
	return 2;
}
