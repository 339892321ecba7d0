/* A steady stream of queries, each asked once, or again after RETRY-MS without an answer, and name servers for it.
 * test/support/peers/steady-dns.ts compiles and runs it.
 *   steady-dns load ADDRESS PORT RATE SECONDS PREFIX [NEW [RETRY-MS]]   RATE queries a second for n<i>.PREFIX.test A, from
 *                                           one socket, until SIGTERM; each NEWth for a name that was never asked for
 *   steady-dns serve ADDRESS PORT RCODE DELAY-MS       answers every query with one address, or with that RCODE
 * `load` waits up to 7 s for outstanding queries and prints one line of JSON: how many were sent, their results, times
 * in microseconds, and between which moments (milliseconds of CLOCK_MONOTONIC) it sent queries that took longer than
 * SLOW_US. A server is stopped or killed from outside. IPv4 only. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "steady.h"

#define SLOW_US 20000
#define WAIT_US 7000000LL
#define IDS 65536
#define HELD 65536

static int open_socket(const char *address, int port, int serve)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int size = 8 << 20;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || fd < 0)
		exit(2);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if ((serve ? bind : connect)(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		perror("address");
		exit(1);
	}
	return fd;
}

static int by_value(const void *a, const void *b)
{
	int64_t d = *(const int64_t *)a - *(const int64_t *)b;

	return d < 0 ? -1 : d > 0;
}

struct load {
	int64_t sent_at[IDS];
	int64_t *times;
	int sent, answered, noerror, servfail, other, slow;
	int64_t first_slow, last_slow;
	/* The query with the id: its number, when it was last asked, how often it was repeated. */
	int numbers[IDS];
	int64_t asked_at[IDS];
	uint8_t again[IDS];
	int oldest, retried, most_again;
};

static void note_slow(struct load *l, int64_t sent_at)
{
	l->slow++;
	if (l->first_slow == 0 || sent_at < l->first_slow)
		l->first_slow = sent_at;
	if (sent_at > l->last_slow)
		l->last_slow = sent_at;
}

static void receive(struct load *l, int fd)
{
	uint8_t in[4096];

	for (;;) {
		int got = recv(fd, in, sizeof(in), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (got < 12)
			continue;
		unsigned id = in[0] << 8 | in[1];
		if (l->sent_at[id] == 0)
			continue;
		int64_t took = now_us() - l->sent_at[id];
		if (took > SLOW_US)
			note_slow(l, l->sent_at[id]);
		l->sent_at[id] = 0;
		l->times[l->answered++] = took;
		if ((in[3] & 15) == 0)
			l->noerror++;
		else if ((in[3] & 15) == 2)
			l->servfail++;
		else
			l->other++;
	}
}

/* Repeats queries that were asked `after` ago and have no answer. */
static void retry(struct load *l, int fd, const char *prefix, int64_t after)
{
	uint8_t query[512];
	int64_t now = now_us();

	for (int i = l->oldest; i < l->sent; i++) {
		unsigned id = i % IDS;
		if (l->sent_at[id] == 0) {
			if (i == l->oldest)
				l->oldest++;
			continue;
		}
		if (l->sent_at[id] > now - after)
			break;
		if (l->asked_at[id] > now - after)
			continue;
		l->retried += l->again[id] == 0;
		if (++l->again[id] > l->most_again)
			l->most_again = l->again[id];
		l->asked_at[id] = now;
		if (send(fd, query, write_query(query, id, l->numbers[id], prefix), 0) < 0)
			perror("send");
	}
}

static int run_load(int argc, char **a)
{
	static struct load l;
	uint8_t query[512];
	int rate = atoi(a[4]), total = rate * atof(a[5]), fresh = argc > 7 ? atoi(a[7]) : 0;
	int64_t after = argc > 8 ? atoi(a[8]) * 1000LL : 0;
	int fd = open_socket(a[2], atoi(a[3]), 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t begin = now_us(), end = 0;

	l.times = calloc(total + 1, sizeof(*l.times));
	signal(SIGTERM, end_load);
	for (;;) {
		int64_t now = now_us();
		if (ending)
			total = l.sent;
		while (l.sent < total && begin + l.sent * 1000000LL / rate <= now) {
			unsigned id = l.sent % IDS;
			l.numbers[id] = fresh && l.sent % fresh == 0 ? NAMES + l.sent : l.sent % NAMES;
			int size = write_query(query, id, l.numbers[id], a[6]);
			l.again[id] = 0;
			l.sent_at[id] = l.asked_at[id] = now_us();
			if (send(fd, query, size, 0) < 0)
				perror("send");
			l.sent++;
		}
		if (l.sent == total && end == 0)
			end = now + WAIT_US;
		if (end != 0 && (l.answered == total || now > end))
			break;
		poll(&p, 1, 1);
		receive(&l, fd);
		if (after > 0)
			retry(&l, fd, a[6], after);
	}
	for (int i = 0; i < IDS; i++)
		if (l.sent_at[i] != 0)
			note_slow(&l, l.sent_at[i]);
	qsort(l.times, l.answered, sizeof(*l.times), by_value);
	printf("{\"sent\":%d,\"noerror\":%d,\"servfail\":%d,\"other\":%d,\"slow\":%d,\"firstSlowMs\":%.3f,\"lastSlowMs\":%.3f,"
	       "\"p50\":%lld,\"p99\":%lld,\"max\":%lld,\"retried\":%d,\"mostRetries\":%d}\n",
	       l.sent, l.noerror, l.servfail, l.other, l.slow, l.first_slow / 1e3, l.last_slow / 1e3,
	       (long long)(l.answered ? l.times[l.answered / 2] : -1), (long long)(l.answered ? l.times[l.answered * 99 / 100] : -1),
	       (long long)(l.answered ? l.times[l.answered - 1] : -1), l.retried, l.most_again);
	return 0;
}

struct held {
	int64_t due;
	struct sockaddr_in peer;
	int length;
	uint8_t message[300];
};

/* Turns a query into its answer in place; returns the new length. */
static int answer(uint8_t *m, int length, int rcode)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18 };
	unsigned sum = 0;

	/* Ends after the question. An OPT record is left out. */
	int at = 12;
	while (at < length && m[at] != 0) {
		sum = sum * 31 + m[at + 1] + m[at + m[at]] * 7;
		at += m[at] + 1;
	}
	at += 5;
	m[2] |= 0x80;
	m[3] = 0x80 | rcode;
	memset(m + 6, 0, 6);
	if (rcode != 0)
		return at;
	m[7] = 1;
	memcpy(m + at, record, sizeof(record));
	m[at + sizeof(record)] = sum >> 8;
	m[at + sizeof(record) + 1] = sum;
	return at + sizeof(record) + 2;
}

static void run_serve(char **a)
{
	static struct held held[HELD];
	unsigned first = 0, next = 0;
	int rcode = atoi(a[4]);
	int64_t delay = atoll(a[5]) * 1000;
	int fd = open_socket(a[2], atoi(a[3]), 1);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	puts("ready");
	fflush(stdout);
	for (;;) {
		poll(&p, 1, first == next ? 1000 : 1);
		int64_t now = now_us();
		while (first != next && held[first % HELD].due <= now) {
			struct held *h = &held[first++ % HELD];
			sendto(fd, h->message, h->length, 0, (struct sockaddr *)&h->peer, sizeof(h->peer));
		}
		for (;;) {
			struct held *h = &held[next % HELD];
			socklen_t size = sizeof(h->peer);
			int got = recvfrom(fd, h->message, 256, MSG_DONTWAIT, (struct sockaddr *)&h->peer, &size);
			if (got < 17)
				break;
			h->length = answer(h->message, got, rcode);
			h->due = now + delay;
			if (delay == 0)
				sendto(fd, h->message, h->length, 0, (struct sockaddr *)&h->peer, size);
			else if (next - first < HELD - 1)
				next++;
		}
	}
}

int main(int argc, char **argv)
{
	if (argc >= 7 && argc <= 9 && strcmp(argv[1], "load") == 0)
		return run_load(argc, argv);
	if (argc == 6 && strcmp(argv[1], "serve") == 0)
		run_serve(argv);
	return 2;
}
