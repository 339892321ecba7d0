/* A client that asks at a steady rate, with any answers, and a server that is slow on purpose.
 *   flood serve ADDRESS PORT DELAY_MS
 *     answers every query with one A record. Names that begin with `s` are answered late by DELAY_MS, with `m` never.
 *     Prints `ready` when bound, and on SIGTERM `{"asked":N}`.
 *   flood ask ADDRESS PORT FROM LETTER RATE SECONDS WAIT_SECONDS
 *     asks for names that begin with the letter, none twice, from the address FROM; then waits for missing answers.
 *     Prints one line of JSON: sent, lost, wrong (answers to no outstanding query), and for NOERROR, SERVFAIL and
 *     all others the count, the latencies in microseconds (p50, p99, max), and how many came within 50 ms.
 * Ids are used in turn. An id that still waits is skipped, so at most 65,536 wait. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
#define SECOND (1000 * MS)
#define NAME_AT 12
#define LABEL 10 /* letter and nine digits */
#define RING 262144
#define SAMPLES (1 << 22)

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int open_socket(const char *address, int port)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), size = 16 << 20;
	if (fd < 0 || inet_pton(AF_INET, address, &own.sin_addr) != 1)
		fail(address);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0)
		fail("bind");
	return fd;
}

/* ---- serve ---- */

struct held {
	uint64_t due;
	struct sockaddr_in to;
	uint16_t size;
	uint8_t octets[256];
};

static struct held ring[RING];
static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static uint16_t answer(uint8_t *m, ssize_t size)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1 };
	ssize_t at = NAME_AT;
	while (at < size && m[at])
		at += m[at] + 1;
	at += 5;
	if (at > size || at + (ssize_t)sizeof(record) > 256)
		return 0;
	m[2] = 0x80 | (m[2] & 1);
	m[3] = 0x80;
	m[7] = 1;
	m[11] = 0;
	memcpy(m + at, record, sizeof(record));
	return (uint16_t)(at + (ssize_t)sizeof(record));
}

static void serve(const char *address, int port, uint64_t delay)
{
	int fd = open_socket(address, port);
	uint64_t head = 0, tail = 0, asked = 0;
	signal(SIGTERM, end);
	puts("ready");
	fflush(stdout);
	while (!ended) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		poll(&wait, 1, head == tail ? 100 : 1);
		for (int i = 0; i < 512; i++) {
			struct held *slot = &ring[tail % RING];
			socklen_t length = sizeof(slot->to);
			ssize_t got = recvfrom(fd, slot->octets, sizeof(slot->octets), 0, (struct sockaddr *)&slot->to, &length);
			if (got < NAME_AT + 2)
				break;
			asked++;
			slot->size = answer(slot->octets, got);
			uint8_t letter = slot->octets[NAME_AT + 1] | 0x20;
			if (slot->size == 0 || letter == 'm')
				continue;
			slot->due = now() + delay;
			if (letter == 's' && tail - head < RING - 1)
				tail++;
			else
				sendto(fd, slot->octets, slot->size, 0, (struct sockaddr *)&slot->to, sizeof(slot->to));
		}
		for (uint64_t time = now(); head != tail && ring[head % RING].due <= time; head++)
			sendto(fd, ring[head % RING].octets, ring[head % RING].size, 0,
			       (struct sockaddr *)&ring[head % RING].to, sizeof(ring[0].to));
	}
	printf("{\"asked\":%lu}\n", asked);
}

/* ---- ask ---- */

static uint64_t sent_at[65536]; /* 0: the id waits for nothing */
static uint32_t numbers[65536];

struct outcome {
	uint64_t count, quick;
	uint32_t *us;
} outcomes[3];

static void write_query(uint8_t *m, uint16_t id, char letter, uint32_t number)
{
	char label[LABEL + 2];
	static const uint8_t head[NAME_AT] = { 0, 0, 1, 0, 0, 1 };
	static const uint8_t rest[] = "\5flood\4test\0\0\1\0";
	memcpy(m, head, NAME_AT);
	m[0] = (uint8_t)(id >> 8);
	m[1] = (uint8_t)id;
	snprintf(label, sizeof(label), "%c%09u", letter, number);
	m[NAME_AT] = LABEL;
	memcpy(m + NAME_AT + 1, label, LABEL);
	memcpy(m + NAME_AT + 1 + LABEL, rest, sizeof(rest));
	m[NAME_AT + 1 + LABEL + sizeof(rest) - 1] = 1; /* in place of the final zero: class IN */
}

#define ASKED (NAME_AT + 1 + LABEL + 16)

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static uint32_t at_share(struct outcome *o, double share)
{
	uint64_t count = o->count < SAMPLES ? o->count : SAMPLES;
	return count == 0 ? 0 : o->us[(uint64_t)((double)(count - 1) * share)];
}

static void print_outcome(const char *name, struct outcome *o)
{
	qsort(o->us, o->count < SAMPLES ? o->count : SAMPLES, sizeof(uint32_t), by_size);
	printf(",\"%s\":{\"count\":%lu,\"within50ms\":%lu,\"p50\":%u,\"p99\":%u,\"max\":%u}", name, o->count, o->quick,
	       at_share(o, 0.5), at_share(o, 0.99), at_share(o, 1));
}

static uint64_t wrong;

static int take(int fd)
{
	uint8_t m[4096];
	int taken = 0;
	for (;;) {
		ssize_t got = recv(fd, m, sizeof(m), 0);
		if (got < NAME_AT)
			return taken;
		uint16_t id = (uint16_t)(m[0] << 8 | m[1]);
		uint32_t number = got > NAME_AT + LABEL ? (uint32_t)strtoul((char *)m + NAME_AT + 2, NULL, 10) : ~0u;
		if (sent_at[id] == 0 || numbers[id] != number) {
			wrong++;
			continue;
		}
		uint64_t ns = now() - sent_at[id];
		int rcode = m[3] & 15;
		struct outcome *o = &outcomes[rcode == 0 ? 0 : rcode == 2 ? 1 : 2];
		if (o->count < SAMPLES)
			o->us[o->count] = (uint32_t)(ns / 1000);
		o->count++;
		o->quick += ns <= 50 * MS;
		sent_at[id] = 0;
		taken++;
	}
}

static void ask(char **argv)
{
	int fd = open_socket(argv[4], 0);
	char letter = argv[5][0];
	double rate = atof(argv[6]);
	uint64_t length = (uint64_t)(atof(argv[7]) * 1e9), patience = (uint64_t)(atof(argv[8]) * 1e9);
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3])) };
	uint64_t sent = 0, answered = 0, refused = 0;
	/* Two runs never ask for the same names. */
	uint32_t first = (uint32_t)(now() / MS % 10000) * 100000;
	uint16_t id = 0;
	if (inet_pton(AF_INET, argv[2], &server.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0)
		fail(argv[2]);
	for (int i = 0; i < 3; i++)
		outcomes[i].us = malloc(SAMPLES * sizeof(uint32_t));
	prctl(PR_SET_TIMERSLACK, 1);
	uint64_t began = now(), last = began + length;
	for (uint64_t time = began; time < last + patience && (time < last || answered < sent); time = now()) {
		uint64_t goal = time < last ? (uint64_t)((double)(time - began) * rate / 1e9) + 1 : 0;
		for (int i = 0; sent < goal && i < 1024; i++) {
			uint8_t m[ASKED];
			for (int k = 0; k < 65536 && sent_at[id]; k++)
				id++;
			numbers[id] = (first + (uint32_t)sent) % 1000000000;
			write_query(m, id, letter, numbers[id]);
			sent_at[id] = now();
			if (send(fd, m, ASKED, 0) < 0)
				refused++;
			id++;
			sent++;
			if (i % 32 == 31)
				answered += (uint64_t)take(fd);
		}
		answered += (uint64_t)take(fd);
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		uint64_t next = began + (uint64_t)((double)sent * 1e9 / rate);
		uint64_t left = next > now() ? next - now() : 0;
		struct timespec limit = { 0, (long)(time >= last || left > MS ? MS : left) };
		ppoll(&wait, 1, &limit, NULL);
	}
	printf("{\"sent\":%lu,\"lost\":%lu,\"wrong\":%lu,\"refusedSend\":%lu,\"ms\":%lu", sent, sent - answered, wrong,
	       refused, (unsigned long)((now() - began) / MS));
	print_outcome("noerror", &outcomes[0]);
	print_outcome("servfail", &outcomes[1]);
	print_outcome("other", &outcomes[2]);
	puts("}");
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "serve") == 0)
		serve(argv[2], atoi(argv[3]), (uint64_t)atoi(argv[4]) * MS);
	else if (argc == 9 && strcmp(argv[1], "ask") == 0)
		ask(argv);
	else
		return 2;
	return 0;
}
