/* Random packets of one endpoint, and a watch over those that leave. test/support/models/random-packets.ts compiles and runs it.
 *   random-packets print SEED FIRST COUNT         prints the frames, each after its length (u16, the machine's order)
 *   random-packets send INTERFACE SEED FIRST COUNT  puts them on a wire; prints how many the kernel took
 *   random-packets push SEED FIRST COUNT          sends their IP packets by raw sockets, as a local process would
 *   random-packets watch INTERFACE FLAGS          until SIGTERM; prints leaks and one line of JSON; flags: 1 no DNS leaves unchanged,
 *                                                 2 the endpoint can send from any address
 *   random-packets listen PORT                    transparent sockets that read and discard, until it is ended
 * random-packets.h describes the packets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "random-packets.h"

#define BATCH 64
#define ROOM 2048
#define LEAKS_SHOWN 10
#define REDIRECTED 1
#define ANY_SOURCE 2

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void print_packets(uint64_t seed, uint64_t first, uint64_t count)
{
	static uint8_t frame[ROOM];

	for (uint64_t i = first; i < first + count; i++) {
		int begins;
		uint16_t size = make(seed, i, frame, &begins);
		fwrite(&size, 2, 1, stdout);
		fwrite(frame, size, 1, stdout);
	}
}

/* Packets that the kernel refuses to send are left out. */
static void send_frames(const char *name, uint64_t seed, uint64_t first, uint64_t count)
{
	static uint8_t frames[BATCH][ROOM];
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(name), .sll_halen = 6 };
	struct iovec parts[BATCH];
	struct mmsghdr messages[BATCH] = {};
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1, begins;
	uint64_t sent = 0;

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) < 0)
		fail("packet socket");
	for (uint64_t i = first; i < first + count;) {
		int n = 0;
		for (; n < BATCH && i < first + count; n++, i++) {
			parts[n] = (struct iovec){ frames[n], make(seed, i, frames[n], &begins) };
			messages[n].msg_hdr = (struct msghdr){
				.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &parts[n], .msg_iovlen = 1 };
		}
		for (int done = 0; done < n;) {
			int taken = sendmmsg(fd, messages + done, n - done, 0);
			if (taken < 0 && errno == ENOBUFS)
				continue;
			sent += taken > 0 ? taken : 0;
			done += taken > 0 ? taken : 1;
		}
	}
	printf("%llu\n", (unsigned long long)sent);
}

static void push_packets(uint64_t seed, uint64_t first, uint64_t count)
{
	static uint8_t frame[ROOM];
	int raw4 = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), raw6 = socket(AF_INET6, SOCK_RAW, IPPROTO_RAW), one = 1;
	uint64_t sent = 0;

	if (raw4 < 0 || raw6 < 0 || setsockopt(raw4, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)) < 0)
		fail("raw socket");
	for (uint64_t i = first; i < first + count; i++) {
		int begins, size = make(seed, i, frame, &begins) - begins;
		uint8_t *packet = frame + begins;
		struct sockaddr_in in = { .sin_family = AF_INET };
		struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
		ssize_t taken;
		if (get16(packet - 2) == 0x0800) {
			memcpy(&in.sin_addr, packet + 16, 4);
			taken = sendto(raw4, packet, size, MSG_DONTWAIT, (struct sockaddr *)&in, sizeof(in));
		} else {
			memcpy(&in6.sin6_addr, packet + 24, 16);
			taken = sendto(raw6, packet, size, MSG_DONTWAIT, (struct sockaddr *)&in6, sizeof(in6));
		}
		sent += taken > 0 || errno == EPERM; /* dropped by a rule on its way */
	}
	printf("%llu\n", (unsigned long long)sent);
}

struct seen {
	uint64_t open, ports, leaks;
};

static int which(const uint8_t *address, int family)
{
	for (int i = 0; i < 7; i++)
		if (!memcmp(address, family == 4 ? to4[i] : to6[i], family == 4 ? 4 : 16))
			return i;
	return -1;
}

/* Neighbour discovery that cannot leave the link passes without policy, from any source. */
static int is_housekeeping(const uint8_t *p, int size)
{
	if (size < 48 || p[6] != 58 || p[7] != 255 || p[24] != 0xff || p[25] != 0x02 || p[41] != 0)
		return 0;
	return p[40] == 133 || p[40] == 135 || p[40] == 136;
}

/* The reason why the packet must not leave; 0 if it may. */
static const char *judge(const uint8_t *p, int size, int family, int flags, struct seen *seen)
{
	int at = family == 4 ? (p[0] & 15) * 4 : 40, to, later = 0;
	uint8_t protocol = p[family == 4 ? 9 : 6];

	if (size < (family == 4 ? 20 : 40))
		return "it ends in its header";
	if (family == 4 ? memcmp(p + 12, from4[0], 3) : memcmp(p + 8, from6[0], 8))
		return 0; /* a packet of the gateway itself */
	if (family == 6 && is_housekeeping(p, size))
		return 0;
	if (!(flags & ANY_SOURCE) &&
	    memcmp(p + (family == 4 ? 12 : 8), family == 4 ? from4[0] : from6[0], family == 4 ? 4 : 16))
		return "the source is another's";
	to = which(p + (family == 4 ? 16 : 24), family);
	if (family == 4)
		later = (get16(p + 6) & 0x1fff) != 0;
	for (int i = 0; family == 6 && i < 12 && at + 8 <= size; i++) {
		if (protocol != 0 && protocol != 43 && protocol != 44 && protocol != 60)
			break;
		if (protocol == 44 && get16(p + at + 2) >> 3)
			later = 1;
		int length = protocol == 44 ? 8 : (p[at + 1] + 1) * 8;
		protocol = p[at];
		at += length;
		if (later)
			break;
	}
	int has_ports = !later && (protocol == 6 || protocol == 17) && at + 8 <= size;
	if ((flags & REDIRECTED) && has_ports && get16(p + at + 2) == 53)
		return "DNS was not redirected";
	if (to == OPEN) {
		seen->open++;
		return 0;
	}
	if (to != PORTS)
		return "the target is denied";
	if (!later && !(has_ports && get16(p + at + 2) == 443))
		return "the port is denied";
	seen->ports++;
	return 0;
}

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	stopped = number;
}

static void watch(const char *name, int flags)
{
	static uint8_t frame[65536];
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(name), .sll_protocol = htons(ETH_P_ALL) };
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), room = 64 << 20;
	struct seen seen = {};
	struct tpacket_stats stats = {};
	socklen_t length = sizeof(stats);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		fail(name);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
		fail("receive buffer");
	signal(SIGTERM, stop);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct sockaddr_ll from;
		socklen_t size_of = sizeof(from);
		struct pollfd wait = { fd, POLLIN, 0 };
		int found = poll(&wait, 1, 300);
		if (found == 0 && stopped)
			break;
		if (found <= 0)
			continue;
		ssize_t size = recvfrom(fd, frame, sizeof(frame), 0, (struct sockaddr *)&from, &size_of);
		int type = get16(frame + 12);
		if (size < 34 || from.sll_pkttype == PACKET_OUTGOING || (type != 0x0800 && type != 0x86dd))
			continue;
		const char *why = judge(frame + 14, size - 14, type == 0x0800 ? 4 : 6, flags, &seen);
		if (!why || ++seen.leaks > LEAKS_SHOWN)
			continue;
		uint64_t index = 0;
		uint8_t *magic = memmem(frame, size, MAGIC, 8);
		if (magic && magic + 16 <= frame + size)
			memcpy(&index, magic + 8, 8);
		printf("leak %lld: %s: ", magic ? (long long)index : -1, why);
		for (int i = 0; i < size && i < 160; i++)
			printf("%02x", frame[i]);
		puts("");
	}
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) < 0)
		fail("statistics");
	printf("{\"open\":%llu,\"ports\":%llu,\"leaks\":%llu,\"lost\":%u}\n", (unsigned long long)seen.open,
	       (unsigned long long)seen.ports, (unsigned long long)seen.leaks, stats.tp_drops);
}

static void listen_at(int port)
{
	static uint8_t octets[65536];
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int udp = socket(AF_INET6, SOCK_DGRAM, 0), tcp = socket(AF_INET6, SOCK_STREAM, 0), one = 1;

	for (int i = 0; i < 2; i++) {
		int fd = i ? tcp : udp;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (setsockopt(fd, SOL_IPV6, IPV6_TRANSPARENT, &one, sizeof(one)) < 0 ||
		    bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
			fail("listener");
	}
	if (listen(tcp, 16) < 0)
		fail("listen");
	puts("ready");
	fflush(stdout);
	while (recv(udp, octets, sizeof(octets), 0) >= 0 || errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	know_addresses();
	if (!strcmp(what, "print") && argc == 5)
		print_packets(strtoull(argv[2], 0, 10), strtoull(argv[3], 0, 10), strtoull(argv[4], 0, 10));
	else if (!strcmp(what, "send") && argc == 6)
		send_frames(argv[2], strtoull(argv[3], 0, 10), strtoull(argv[4], 0, 10), strtoull(argv[5], 0, 10));
	else if (!strcmp(what, "push") && argc == 5)
		push_packets(strtoull(argv[2], 0, 10), strtoull(argv[3], 0, 10), strtoull(argv[4], 0, 10));
	else if (!strcmp(what, "watch") && argc == 4)
		watch(argv[2], atoi(argv[3]));
	else if (!strcmp(what, "listen") && argc == 3)
		listen_at(atoi(argv[2]));
	else
		return 2;
	return 0;
}
