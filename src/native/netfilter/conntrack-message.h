/* This file encodes requests of ctnetlink and decodes entries of the connection table into records.
 *
 * An entry becomes a record of RECORD octets. Numbers are in the machine's byte order. Addresses have 16 octets (IPv4 in the
 * first 4, the rest zero). Offsets:
 * - 0 protocol, 1 family (4 or 6), 2 TCP state (TCP_CONNTRACK_*), 4 status (IPS_*, u32), 8 id (u32, as the kernel sent it), 12
 *   zone (u16)
 * - 16 original source, 32 original destination
 * - 48 original source port (u16), 50 original destination port, 52 reply source port, 54 reply destination port
 * - 56 reply source, 72 reply destination */
#ifndef NAMEGATE_CONNTRACK_MESSAGE_H
#define NAMEGATE_CONNTRACK_MESSAGE_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink.h"

#define RECORD 88
#define TUPLE 16
#define REPLY_TUPLE 56
#define PORTS 48
/* Most octets of one read. */
#define ROOM 32768

struct request {
	struct nlmsghdr header;
	struct nfgenmsg family;
	char attributes[256];
};

/* `number`: 4, 6, or 0 for both families. */
static int family_of(uint8_t number) { return number == 4 ? AF_INET : number == 6 ? AF_INET6 : AF_UNSPEC; }
static size_t width_of(uint8_t family) { return family == 4 ? 4 : 16; }

static void begin(struct request *r, uint8_t family, int type, int flags)
{
	memset(r, 0, sizeof(*r));
	r->header.nlmsg_len = NLMSG_LENGTH(sizeof(struct nfgenmsg));
	r->header.nlmsg_type = (NFNL_SUBSYS_CTNETLINK << 8) | type;
	r->header.nlmsg_flags = NLM_F_REQUEST | flags;
	r->family.nfgen_family = family_of(family);
	r->family.version = NFNETLINK_V0;
}

static struct nlattr *put(struct request *r, int type, const void *data, size_t size)
{
	struct nlattr *attribute = (struct nlattr *)((char *)r + NLMSG_ALIGN(r->header.nlmsg_len));
	attribute->nla_type = type;
	attribute->nla_len = NLA_HDRLEN + size;
	if (size)
		memcpy((char *)attribute + NLA_HDRLEN, data, size);
	r->header.nlmsg_len = NLMSG_ALIGN(r->header.nlmsg_len) + NLA_ALIGN(attribute->nla_len);
	return attribute;
}

static struct nlattr *open_nest(struct request *r, int type) { return put(r, type | NLA_F_NESTED, NULL, 0); }

static void close_nest(struct request *r, struct nlattr *nest)
{
	nest->nla_len = (char *)r + r->header.nlmsg_len - (char *)nest;
}

static void put_tuple(struct request *r, int type, uint8_t family, uint8_t protocol, const uint8_t *source,
		      const uint8_t *target, uint16_t source_port, uint16_t target_port)
{
	uint16_t ports[2] = { htons(source_port), htons(target_port) };
	struct nlattr *tuple = open_nest(r, type);
	struct nlattr *part = open_nest(r, CTA_TUPLE_IP);
	put(r, family == 4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, source, width_of(family));
	put(r, family == 4 ? CTA_IP_V4_DST : CTA_IP_V6_DST, target, width_of(family));
	close_nest(r, part);
	part = open_nest(r, CTA_TUPLE_PROTO);
	put(r, CTA_PROTO_NUM, &protocol, 1);
	put(r, CTA_PROTO_SRC_PORT, &ports[0], 2);
	put(r, CTA_PROTO_DST_PORT, &ports[1], 2);
	close_nest(r, part);
	close_nest(r, tuple);
}

static int send_request(int fd, struct request *r) { return netlink_send(fd, r, r->header.nlmsg_len); }

/* Calls `take` for every attribute between `at` and `end`. */
static void each_attribute(const char *at, const char *end, void (*take)(int, const char *, size_t, void *), void *to)
{
	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *attribute = (const struct nlattr *)at;
		if (attribute->nla_len < NLA_HDRLEN || at + attribute->nla_len > end)
			return;
		take(attribute->nla_type & NLA_TYPE_MASK, at + NLA_HDRLEN, attribute->nla_len - NLA_HDRLEN, to);
		at += NLA_ALIGN(attribute->nla_len);
	}
}

/* Where the tuple of one direction lies in a record. */
struct tuple_place {
	uint8_t *record;
	size_t addresses;
	size_t ports;
};

static void read_address(int type, const char *data, size_t size, void *to)
{
	struct tuple_place *place = to;
	int source = type == CTA_IP_V4_SRC || type == CTA_IP_V6_SRC;
	if (size <= 16)
		memcpy(place->record + place->addresses + (source ? 0 : 16), data, size);
}

static void read_protocol(int type, const char *data, size_t size, void *to)
{
	struct tuple_place *place = to;
	uint16_t port;
	if (type == CTA_PROTO_NUM && size >= 1)
		place->record[0] = (uint8_t)data[0];
	if ((type != CTA_PROTO_SRC_PORT && type != CTA_PROTO_DST_PORT) || size < 2)
		return;
	memcpy(&port, data, 2);
	port = ntohs(port);
	memcpy(place->record + place->ports + (type == CTA_PROTO_SRC_PORT ? 0 : 2), &port, 2);
}

static void read_tuple(int type, const char *data, size_t size, void *to)
{
	if (type == CTA_TUPLE_IP)
		each_attribute(data, data + size, read_address, to);
	else if (type == CTA_TUPLE_PROTO)
		each_attribute(data, data + size, read_protocol, to);
}

static void read_tcp(int type, const char *data, size_t size, void *to)
{
	if (type == CTA_PROTOINFO_TCP_STATE && size >= 1)
		((uint8_t *)to)[2] = (uint8_t)data[0];
}

static void read_state(int type, const char *data, size_t size, void *to)
{
	if (type == CTA_PROTOINFO_TCP)
		each_attribute(data, data + size, read_tcp, to);
}

static void read_entry(int type, const char *data, size_t size, void *to)
{
	uint8_t *record = to;
	struct tuple_place original = { record, TUPLE, PORTS }, reply = { record, REPLY_TUPLE, PORTS + 4 };
	uint32_t number;
	uint16_t zone;
	if (type == CTA_TUPLE_ORIG)
		each_attribute(data, data + size, read_tuple, &original);
	else if (type == CTA_TUPLE_REPLY)
		each_attribute(data, data + size, read_tuple, &reply);
	else if (type == CTA_PROTOINFO)
		each_attribute(data, data + size, read_state, record);
	else if (type == CTA_STATUS && size >= 4) {
		memcpy(&number, data, 4);
		number = ntohl(number);
		memcpy(record + 4, &number, 4);
	} else if (type == CTA_ID && size >= 4)
		memcpy(record + 8, data, 4);
	else if (type == CTA_ZONE && size >= 2) {
		memcpy(&zone, data, 2);
		zone = ntohs(zone);
		memcpy(record + 12, &zone, 2);
	}
}

static void read_record(const struct nlmsghdr *message, uint8_t *record)
{
	const struct nfgenmsg *family = NLMSG_DATA(message);
	const char *end = (const char *)message + message->nlmsg_len;
	memset(record, 0, RECORD);
	record[1] = family->nfgen_family == AF_INET ? 4 : 6;
	each_attribute((const char *)family + NLMSG_ALIGN(sizeof(*family)), end, read_entry, record);
}

static int error_in(const struct nlmsghdr *message)
{
	return ((const struct nlmsgerr *)NLMSG_DATA(message))->error;
}

#endif
