/* This file has the keys, values and numbers that the kernel programs share with ../maps/layout.ts, and the event that
 * ../maps/reports.ts reads. Maps outlive the process. So a change here needs a new pin directory (LAYOUT_VERSION in
 * layout.ts), and must never change existing maps. Numbers are in host order unless a field says network order. Fields in
 * which prefixes must match use network order. */
#ifndef NAMEGATE_LAYOUT_H
#define NAMEGATE_LAYOUT_H

#include <linux/bpf.h>
#include <linux/types.h>

/* Values of ng_mode. */
#define MODE_ENFORCE 0
#define MODE_AUDIT 1
#define MODE_BYPASS 2

/* Values of ng_endpoints. */
#define HOOK_INTERFACE 1
#define HOOK_CGROUP 2
#define ENDPOINT_ENFORCING 1
#define ENDPOINT_AUDIT 2
#define ENDPOINT_SCOPED 4  /* uses its own scope of ng_ipcache first */
#define ENDPOINT_LAYER3 32 /* the interface carries packets without a link header */
#define ENDPOINT_FENCED 64 /* a fenced interface: DNS only; id 0, generation = interface index */
#define ENDPOINT_ATTACHED 128 /* the programs are on the hook, so the gate lets its packets through */

/* Classes, as in src/identity/reserved.ts. A class is the reserved identity of a kind of address. */
#define CLASS_HOST 1
#define CLASS_WORLD4 9
#define CLASS_WORLD6 10
#define CLASS_ENDPOINT 11

/* Verdicts in ng_policy. */
#define POLICY_ALLOW 1
#define POLICY_DENY 2
#define POLICY_AUDIT 3
#define POLICY_AUDIT_DENY 4
#define POLICY_AUDIT_PASS 5
#define POLICY_WEAK_DENY 6
/* The strength of each verdict, four bits for each, from the lowest bits on. The stronger verdict wins. */
#define POLICY_STRENGTHS 0x1542630u
#define POLICY_BITS_PORT 88     /* endpoint, identity, protocol, port */
#define POLICY_BITS_PROTOCOL 72 /* endpoint, identity, protocol */

/* Who began a connection. NEIGHBOUR marks an address that is known to be on the link. */
#define BEGAN_ENDPOINT 1
#define BEGAN_PEER 2
#define BEGAN_NEIGHBOUR 3

/* The state of a connection in ng_conn_new. */
#define STATE_NEW 0      /* SYN or first datagram seen */
#define STATE_ANSWERED 1 /* SYN with ACK seen from the other side */
#define STATE_OPEN 2     /* established, but ng_conn or the endpoint's share was full */
#define STATE_CLOSING 3  /* both FINs seen, or a reset before it was established */
#define STATE_RESET 4    /* RST seen; later traffic in both directions proves that it was forged */

struct mode_value {
	__u32 mode;
};

/* Limits of ng_conn and of ng_conn_new. share.h explains them. */
struct config_value {
	__u32 connections_per_endpoint;
	__u32 reserved;
	__u32 pool;
	__u32 unused;
};

struct prefix_key {
	__u32 bits;
	__be32 scope; /* ng_hosts, ng_ipcache: 0 is the node. ng_source: the endpoint's id. */
	__be32 family;
	__u32 address[4];
};

struct prefix_value {
	__u32 identity;
	__u32 class;
};

struct hook_key {
	__u32 kind;
	__u32 unused;
	__u64 id;
};

struct endpoint_value {
	__u32 id;
	__u32 generation;
	__u32 flags;
	__u32 unused;
};

struct policy_key {
	__u32 bits;
	__be32 endpoint;
	__be32 identity;
	__u8 protocol;
	__u8 port[2]; /* network order */
	__u8 unused;
};

struct policy_value {
	__u8 verdict;
	__u8 unused[3];
	__u32 rule;
};

struct conn_key {
	__u32 endpoint;
	__u32 generation;
	__u8 protocol;
	__u8 family;
	__be16 local_port;
	__be16 peer_port;
	__u16 unused;
	__u32 local[4];
	__u32 peer[4];
};

/* Each field is written for one direction only, so two CPUs never change one byte together. */
struct conn_value {
	__u64 seen; /* CLOCK_MONOTONIC, ns */
	__u8 began;
	__u8 state;
	__u8 fin_local;
	__u8 fin_peer;
	__u8 after_local; /* traffic after a reset */
	__u8 after_peer;
	__u8 used; /* seen again after its first packet */
	__u8 unused;
};

/* The owner in whose share of a table an entry is counted. */
struct owner_key {
	__u32 endpoint;
	__u32 generation;
};

/* A value of ng_conn_new. */
struct flow_value {
	struct conn_value conn;
	__u32 slot;
	struct owner_key owner;
	__u32 unused;
};

/* A key of ng_flow_slot. The value is a conn_key. */
struct slot_key {
	struct owner_key owner;
	__u32 number;
};

/* A value of ng_flow_turn, by owner_key: the number of the next slot, and the lowest number in use. */
struct flow_turn {
	struct bpf_spin_lock lock;
	__u32 next;
	__u32 oldest;
	__u32 unused;
};

/* ng_conn_count counts the entries of a table: entries opened by the kernel minus entries freed by user space. Endpoint 0 counts
 * all entries. */
#define TABLE_CONNECTIONS 0
#define TABLE_FLOWS 2
#define COUNT_KERNEL 0
#define COUNT_FREED 1

struct count_key {
	__u32 endpoint;
	__u32 generation;
	__u32 side;
};

struct listener_key {
	__u32 family;
	__be16 port;
	__u16 unused;
	__u32 address[4];
};

struct dns_source_key {
	__u8 protocol;
	__u8 family;
	__be16 port;
	__u32 address[4];
};

/* ng_gate has the names of interfaces that are to be fenced. For a whole name `bits` includes its final zero octet. For the
 * beginning of a name (`lxc*`) it does not. */
#define GATE_NAME_SIZE 16

struct gate_key {
	__u32 bits;
	char name[GATE_NAME_SIZE];
};

/* ng_adopting has two times of an endpoint: until when its TCP segments without SYN are adopted, and until when its adopted
 * connections pass. CLOCK_MONOTONIC, ns. */
struct adopting_key {
	__u32 endpoint;
	__u32 generation;
};

struct adopting_value {
	__u64 learn_until;
	__u64 pass_until;
};

/* Values of ng_adopted, by conn_key. */
#define ADOPTED_LISTED 1  /* open according to conntrack */
#define ADOPTED_LEARNED 2 /* open according to a segment that the endpoint sent */

struct adopted_value {
	__u64 pass_until;
	__u32 origin;
	__u32 unused;
};

/* Values of ng_intercepted. */
#define INTERCEPTED4 1
#define INTERCEPTED6 2

struct intercepted_value {
	__u8 families; /* DNS of these families may pass to the rules that redirect it */
	__u8 quiet;    /* packets from port 53 of these families begin no connection */
	__u8 bridge_port;
	__u8 unused;
	__u8 mac[6]; /* for a bridge port: the address of its bridge */
	__u8 unused2[6];
	__u64 quiet_until; /* CLOCK_MONOTONIC, ns; all ones while the interface is intercepted */
};

#define EVENT_DENY 1
#define EVENT_AUDIT 2
#define REASON_POLICY 1
#define REASON_SOURCE 2
#define REASON_MALFORMED 3
#define REASON_FRAGMENT 4

struct event {
	__u64 seen; /* CLOCK_MONOTONIC, ns */
	__u64 time; /* CLOCK_BOOTTIME, ns: also runs while the machine sleeps */
	__u32 endpoint;
	__u32 identity;
	__u32 rule;
	__u8 verdict;
	__u8 reason;
	__u8 family;
	__u8 protocol;
	__be16 port; /* of the peer */
	__be16 local_port;
	__u32 peer[4]; /* IPv4: the first four octets */
	__u32 opening; /* set for the first packet of a TCP connection */
};

struct rate_value {
	__u64 window;
	__u32 count;
	__u32 unused;
};

/* Indices of ng_stats. layout.ts has their names in the same order. */
enum stat {
	STAT_ALLOW,
	STAT_REPLY,
	STAT_LISTENER,
	STAT_NEIGHBOUR,
	STAT_AUDIT,
	STAT_NOT_ENFORCING,
	STAT_BYPASS,
	STAT_DROP_POLICY,
	STAT_DROP_SOURCE,
	STAT_DROP_MALFORMED,
	STAT_DROP_FRAGMENT,
	STAT_DROP_NO_ENDPOINT,
	STAT_CONN_LIMIT,
	STAT_CONN_FULL,
	STAT_EVENTS_LOST,
	STAT_EVENTS_SAMPLED_OUT,
	STAT_INTERCEPTED,
	STAT_ADOPTED,
	STAT_ADOPTED_FULL,
	STAT_FLOW_LIMIT,
	STAT_FLOW_FULL,
	STATS
};

#endif
