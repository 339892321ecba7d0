/* Puts frames in front of a network namespace's rules, one at a time, so that a test can ask the real kernel for a verdict on
 * each. Usage: inject REQUESTS ANSWERS. Opens raw sockets in its first namespace, then enters a network namespace of its own and
 * writes 'r'; the test moves the far ends of its interfaces there. A request is `from` (1) or `to` (0), the interface's number
 * (u8), the length (u16, the machine's order) and an Ethernet frame. The answer is '+' or '-'.
 *   from: sends the frame into far end `peerN`, then a marker that the rules of the test count. Once the marker is counted, the
 *         kernel has handled the frame. Both are sent from one CPU, so they stay in order.
 *   to:   a raw socket of the first namespace sends the packet through `lxcN`, like a process there. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IPV6_HDRINCL
#define IPV6_HDRINCL 36
#endif
#define ROOM 4096

static int raw4[8], raw6[8], frames;

static uint16_t checksum(const uint8_t *octets, size_t size)
{
	uint32_t sum = 0;
	for (size_t i = 0; i + 1 < size; i += 2)
		sum += (octets[i] << 8) | octets[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void put_checksum(uint8_t *packet, size_t size)
{
	size_t head = (packet[0] & 15) * 4;
	if (size < head || head < 20)
		return;
	packet[10] = packet[11] = 0;
	uint16_t sum = checksum(packet, head);
	packet[10] = sum >> 8;
	packet[11] = sum & 255;
}

static int send_frame(int number, uint8_t *frame, size_t size)
{
	char name[16];
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	snprintf(name, sizeof(name), "peer%d", number);
	to.sll_ifindex = if_nametoindex(name);
	to.sll_protocol = htons(ETH_P_IP);
	size_t at = 12;
	while (at + 4 < size && (frame[at] == 0x81 || frame[at] == 0x88) && (frame[at + 1] == 0 || frame[at + 1] == 0xa8))
		at += 4;
	if (frame[at] == 0x08 && frame[at + 1] == 0 && size >= at + 22)
		put_checksum(frame + at + 2, size - at - 2);
	return sendto(frames, frame, size, 0, (struct sockaddr *)&to, sizeof(to)) < 0 ? -1 : 0;
}

static int send_marker(int number)
{
	uint8_t frame[14 + 28] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0,
				   192, 0, 0, 8, 192, 0, 0, 9, 0, 9, 0, 9, 0, 8, 0, 0 };
	return send_frame(number, frame, sizeof(frame));
}

static int send_packet(int number, uint8_t *frame, size_t size)
{
	uint8_t *packet = frame + 14;
	if (frame[12] == 8 && frame[13] == 0 && size >= 34) {
		struct sockaddr_in to = { .sin_family = AF_INET };
		memcpy(&to.sin_addr, packet + 16, 4);
		return sendto(raw4[number], packet, size - 14, 0, (struct sockaddr *)&to, sizeof(to)) < 0 ? -1 : 0;
	}
	if (frame[12] == 0x86 && frame[13] == 0xdd && size >= 54) {
		struct sockaddr_in6 to = { .sin6_family = AF_INET6 };
		memcpy(&to.sin6_addr, packet + 24, 16);
		return sendto(raw6[number], packet, size - 14, 0, (struct sockaddr *)&to, sizeof(to)) < 0 ? -1 : 0;
	}
	return 0;
}

static int read_all(int fd, void *into, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t got = read(fd, (char *)into + at, size - at);
		if (got <= 0)
			return -1;
		at += got;
	}
	return 0;
}

int main(int count, char **arguments)
{
	cpu_set_t cpus;
	uint8_t frame[ROOM];
	struct { uint8_t from, number; uint16_t size; } request;
	if (count != 3)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	int in = open(arguments[1], O_RDWR), out = open(arguments[2], O_RDWR), one = 1;
	for (int i = 1; i <= 3; i++) {
		char name[16];
		int size = snprintf(name, sizeof(name), "lxc%d", i);
		raw4[i] = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
		raw6[i] = socket(AF_INET6, SOCK_RAW, IPPROTO_RAW);
		setsockopt(raw6[i], IPPROTO_IPV6, IPV6_HDRINCL, &one, sizeof(one));
		if (setsockopt(raw4[i], SOL_SOCKET, SO_BINDTODEVICE, name, size + 1) < 0 ||
		    setsockopt(raw6[i], SOL_SOCKET, SO_BINDTODEVICE, name, size + 1) < 0)
			return 3;
	}
	if (unshare(CLONE_NEWNET) < 0)
		return 4;
	/* The far ends send no packets of their own: no discovery, no reports. */
	for (int i = 0; i < 2; i++) {
		int setting = open(i ? "/proc/sys/net/ipv6/conf/all/disable_ipv6"
				     : "/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY);
		if (setting >= 0 && write(setting, "1", 1) != 1)
			return 7;
		close(setting);
	}
	frames = socket(AF_PACKET, SOCK_RAW, 0);
	/* Kernels before 6.6 report the time of a packet only where a socket asks for such times. */
	setsockopt(frames, SOL_SOCKET, SO_TIMESTAMP, &one, sizeof(one));
	if (in < 0 || out < 0 || frames < 0 || write(out, "r", 1) != 1)
		return 5;
	while (read_all(in, &request, sizeof(request)) == 0 && request.size <= ROOM &&
	       read_all(in, frame, request.size) == 0) {
		int failed = request.from ? send_frame(request.number, frame, request.size)
					  : send_packet(request.number, frame, request.size);
		if (request.from && send_marker(request.number) < 0)
			failed = -1;
		if (write(out, failed ? "-" : "+", 1) != 1)
			return 6;
	}
	return 0;
}
