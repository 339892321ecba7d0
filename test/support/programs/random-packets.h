/* Random packets of one endpoint: packet N of a seed is always the same, independent of the packets before it. A third is IPv4. Extension
 * headers are in any order, lengths are false, fragments overlap, and the octets in the place of ports are mostly port 53.
 *
 * They go from 10.0.1.5 or fd00::5, rarely from another's address, to an address that is denied, one that is open, one with only
 * port 443 over UDP and TCP, the gateway, or a group. test/support/models/random-packets.ts lists the same addresses. */
#ifndef NAMEGATE_RANDOM_PACKETS_H
#define NAMEGATE_RANDOM_PACKETS_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#define MAGIC "ngRandom"

static const uint8_t HERE[6] = { 2, 0, 0, 0, 0, 1 }, THERE[6] = { 2, 0, 0, 0, 0, 2 };
static const char *const FROM4[] = { "10.0.1.5", "10.0.1.6" }, *const FROM6[] = { "fd00::5", "fd00::6" };
static const char *const TO4[] = { "198.51.100.66", "192.0.2.1", "192.0.2.2", "10.255.0.1", "224.0.0.251", "239.1.2.3",
				   "255.255.255.255" };
static const char *const TO6[] = { "2001:db8:66::1", "2001:db8::1", "2001:db8::2", "fd01::1", "ff02::fb", "ff05::1:3",
				   "ff0e::99" };
#define DENIED 0
#define OPEN 1
#define PORTS 2
static uint8_t from4[2][4], to4[7][4], from6[2][16], to6[7][16];

static uint64_t state;

static uint32_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dULL) >> 32;
}

static int below(uint32_t n)
{
	return (uint64_t)draw() * n >> 32;
}

static int percent(int p)
{
	return below(100) < p;
}

static void begin(uint64_t seed, uint64_t index)
{
	uint64_t z = seed * 0x9e3779b97f4a7c15ULL + (index + 1) * 0xbf58476d1ce4e5b9ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	state = (z ^ z >> 31) | 1;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static uint32_t get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static void fill(uint8_t *at, int size)
{
	for (int i = 0; i < size; i++)
		at[i] = draw();
}

static int pick_port(void)
{
	static const uint16_t others[] = { 0, 80, 853, 5353, 5300, 10053, 52, 54, 13568 };
	int n = below(100);

	return n < 60 ? 53 : n < 85 ? 443 : n < 95 ? others[below(9)] : below(65536);
}

static uint8_t pick_protocol(void)
{
	static const uint8_t others[] = { 1, 58, 2, 41, 47, 132, 136, 33, 59, 4, 89, 255 };
	int n = below(100);

	return n < 42 ? 17 : n < 80 ? 6 : n < 97 ? others[below(12)] : below(256);
}

/* Every protocol begins with octets that look like ports. */
static int put_transport(uint8_t *at, uint8_t protocol, uint64_t index)
{
	static const uint8_t flags[] = { 0x02, 0x02, 0x10, 0x12, 0x18, 0x11, 0x04, 0x00, 0x03, 0x06 };
	int head = protocol == 6 ? 20 : protocol == 17 ? 8 : 4 + below(24), rest = 16 + below(40);

	fill(at, head);
	put16(at, percent(80) ? 40000 + below(16) : pick_port());
	put16(at + 2, pick_port());
	if (protocol == 17)
		put16(at + 4, percent(93) ? head + rest : below(200)), put16(at + 6, 0);
	if (protocol == 6) {
		at[12] = (percent(90) ? 5 : below(16)) << 4;
		at[13] = percent(90) ? flags[below(10)] : draw();
	}
	if ((protocol == 1 || protocol == 58) && percent(80))
		at[0] = "\x08\x00\x80\x81\x85\x87\x88\x8f\x03\x04"[below(10)], at[1] = percent(80) ? 0 : draw();
	memcpy(at + head, MAGIC, 8);
	memcpy(at + head + 8, &index, 8);
	fill(at + head + 16, rest - 16);
	return head + rest;
}

static int put_options(uint8_t *at)
{
	int size = (percent(70) ? 1 : 1 + below(10)) * 4;

	switch (below(6)) {
	case 0:
		memset(at, 1, size);
		break;
	case 1:
		memset(at, 0, size);
		break;
	case 2:
		memset(at, 1, size);
		memcpy(at, "\x94\x04\x00\x00", 4);
		break;
	case 3:
		memset(at, 1, size);
		at[0] = "\x07\x83\x89\x44\x82"[below(5)];
		at[1] = percent(70) ? size : below(44);
		at[2] = 4;
		break;
	default:
		fill(at, size);
	}
	return size;
}

static uint32_t checksum(const uint8_t *at, int size)
{
	uint32_t sum = 0;

	for (int i = 0; i + 1 < size; i += 2)
		sum += get16(at + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static int wrong_length(int right)
{
	return percent(97) ? right : percent(50) ? right + below(9) - 4 : below(1500);
}

/* Offset and flags of a fragment, in the units of the family's field. */
static int pick_fragment(void)
{
	static const uint16_t offsets[] = { 0, 0, 0, 1, 1, 2, 3, 5, 8, 185 };

	return offsets[below(10)];
}

static int put_ipv4(uint8_t *at, int from, int to, uint64_t index)
{
	int head = 20 + (percent(14) ? put_options(at + 20) : 0);
	uint8_t protocol = percent(92) ? pick_protocol() : "\x33\x87\x8b\x8c\x32\x3c\x2b\x2c"[below(8)];
	int size = head + put_transport(at + head, protocol, index);

	at[0] = 0x40 | (percent(98) ? head / 4 : below(16));
	at[1] = 0;
	put16(at + 2, wrong_length(size));
	put16(at + 4, below(4));
	put16(at + 6, percent(86) ? 0x4000 * below(2) : (percent(50) ? 0x2000 : 0) | pick_fragment());
	at[8] = percent(97) ? 64 : below(3);
	at[9] = protocol;
	memcpy(at + 12, from4[from], 4);
	memcpy(at + 16, to4[to], 4);
	put16(at + 10, 0);
	put16(at + 10, percent(99) ? checksum(at, head) : draw());
	return size;
}

/* One extension header; returns its true size, which its length field can hide. */
static int put_extension(uint8_t *at, uint8_t type, uint8_t next)
{
	int units = percent(80) ? 0 : below(4), size = 8 + 8 * units;

	if (type == 44)
		size = 8;
	else if (type == 51)
		size = 16 + 8 * units;
	memset(at, 0, size);
	at[0] = next;
	at[1] = type == 51 ? size / 4 - 2 : units;
	if (type == 44) {
		at[1] = percent(90) ? 0 : draw();
		put16(at + 2, pick_fragment() << 3 | below(2));
		at[7] = below(4);
	} else if (type == 43) {
		at[2] = "\x00\x02\x03\x04\xfd"[below(5)];
		at[3] = percent(75) ? 0 : below(4);
	} else if (type == 0 || type == 60) {
		at[2] = 1;
		at[3] = size - 4;
		if (percent(10))
			fill(at + 2, size - 2);
	} else if (type == 50 || percent(20)) {
		fill(at + 2, size - 2);
	}
	if (type != 44 && percent(4))
		at[1] = percent(50) ? below(8) : below(256);
	return size;
}

static uint8_t pick_extension(void)
{
	static const uint8_t types[] = { 0, 43, 44, 50, 51, 51, 60, 60, 135, 139, 140, 253, 254 };

	return percent(95) ? types[below(13)] : below(256);
}

static int put_ipv6(uint8_t *at, int from, int to, uint64_t index)
{
	int n = below(100);
	int headers = n < 25 ? 0 : n < 60 ? 1 : n < 82 ? 2 : n < 92 ? 3 : below(12), size = 40;
	uint8_t types[13];

	for (int i = 0; i < headers; i++)
		types[i] = pick_extension();
	types[headers] = pick_protocol();
	for (int i = 0; i < headers; i++)
		size += put_extension(at + size, types[i], types[i + 1]);
	size += put_transport(at + size, types[headers], index);
	at[0] = percent(99) ? 0x60 : draw();
	memset(at + 1, 0, 3);
	put16(at + 4, percent(99) ? wrong_length(size - 40) : 0);
	at[6] = types[0];
	at[7] = percent(90) ? 64 : "\xff\x01\x00"[below(3)];
	memcpy(at + 8, from6[from], 16);
	memcpy(at + 24, to6[to], 16);
	return size;
}

static int pick_target(void)
{
	int n = below(100);

	return n < 55 ? DENIED : n < 65 ? OPEN : n < 80 ? PORTS : n < 92 ? 3 : 4 + below(3);
}

/* The frame of packet `index`, and the position of its IP packet; returns its length. */
static int make(uint64_t seed, uint64_t index, uint8_t *frame, int *begins)
{
	int at = 12, family, to;

	begin(seed, index);
	memcpy(frame, HERE, 6);
	memcpy(frame + 6, THERE, 6);
	to = pick_target();
	if (percent(3))
		fill(frame + 1, 5);
	if (percent(3)) {
		put16(frame + at, percent(80) ? 0x8100 : 0x88a8);
		put16(frame + at + 2, percent(60) ? 0 : below(4096));
		at += 4;
	}
	family = percent(35) ? 4 : 6;
	put16(frame + at, percent(99) ? (family == 4 ? 0x0800 : 0x86dd) : percent(50) ? 0x0800 : 0x86dd);
	at += 2;
	*begins = at;
	at += family == 4 ? put_ipv4(frame + at, percent(3), to, index) : put_ipv6(frame + at, percent(3), to, index);
	if (percent(2))
		at += below(9);
	else if (percent(3))
		at -= below(at - *begins - 20);
	return at;
}

static void know_addresses(void)
{
	for (int i = 0; i < 2; i++) {
		inet_pton(AF_INET, FROM4[i], from4[i]);
		inet_pton(AF_INET6, FROM6[i], from6[i]);
	}
	for (int i = 0; i < 7; i++) {
		inet_pton(AF_INET, TO4[i], to4[i]);
		inet_pton(AF_INET6, TO6[i], to6[i]);
	}
}

#endif
