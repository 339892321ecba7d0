/* This file judges one packet of a known sender: its source, listeners, policy, adoption, and mode. It also reports the verdict.
 * The steps follow the verdict order in src/datapath/datapath.ts. */
#ifndef NAMEGATE_JUDGE_H
#define NAMEGATE_JUDGE_H

#include "adopt.h"
#include "conn.h"
#include "maps.h"
#include "packet.h"

#define EVENT_WINDOW 100000000ULL
#define EVENTS_PER_WINDOW 100 /* per CPU */

#define PASS 1
#define DROP 0

/* What is known about one packet: the identity of its destination and the verdict of policy. */
struct judgement {
	__u32 identity;
	__u32 class;
	__u32 rule;
	__u32 verdict; /* POLICY_*, 0 when no entry matched */
};

static __always_inline __u32 current_mode(void)
{
	__u32 zero = 0;
	struct mode_value *value = bpf_map_lookup_elem(&ng_mode, &zero);

	return value ? value->mode : MODE_ENFORCE;
}

static __always_inline int events_spent(void)
{
	__u32 zero = 0;
	struct rate_value *rate = bpf_map_lookup_elem(&ng_rate, &zero);
	__u64 window = bpf_ktime_get_ns() / EVENT_WINDOW;

	if (!rate)
		return 1;
	if (rate->window != window) {
		rate->window = window;
		rate->count = 0;
	}
	return ++rate->count > EVENTS_PER_WINDOW;
}

static __always_inline void report(const struct endpoint_value *e, const struct packet *p,
				   const struct judgement *j, __u8 verdict, __u8 reason)
{
	if (events_spent()) {
		count(STAT_EVENTS_SAMPLED_OUT);
		return;
	}
	struct event *event = bpf_ringbuf_reserve(&ng_events, sizeof(*event), 0);
	if (!event) {
		count(STAT_EVENTS_LOST);
		return;
	}
	event->seen = bpf_ktime_get_ns();
	event->time = bpf_ktime_get_boot_ns();
	event->endpoint = e->id;
	event->identity = j->identity;
	event->rule = j->rule;
	event->verdict = verdict;
	event->reason = reason;
	event->family = p->family;
	event->protocol = p->protocol;
	event->port = p->target_port;
	event->local_port = p->source_port;
	__builtin_memcpy(event->peer, p->target, 16);
	event->opening = p->protocol == IPPROTO_TCP && is_opening(p);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline int is_loopback(const struct packet *p)
{
	if (p->family == 4)
		return (p->target[0] & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000);
	return !(p->target[0] | p->target[1] | p->target[2]) && p->target[3] == bpf_htonl(1);
}

/* Finds the longest prefix of a whole address. */
static __always_inline struct prefix_value *longest_prefix(struct prefix_key *key)
{
	struct prefix_value *value = bpf_map_lookup_elem(&ng_hosts, key);

	return value ? value : bpf_map_lookup_elem(&ng_ipcache, key);
}

/* Finds the identity and the class of an address as the endpoint sees it. `address` has 4 words. */
static __always_inline void identify(const struct endpoint_value *e, __u32 family, const __u32 *address,
				     struct judgement *j)
{
	struct prefix_key key = { .family = bpf_htonl(family), .bits = family == 4 ? 96 : 192 };
	struct prefix_value *value = 0;

	__builtin_memcpy(key.address, address, 16);
	if (e->flags & ENDPOINT_SCOPED) {
		key.scope = bpf_htonl(e->id);
		value = longest_prefix(&key);
		key.scope = 0;
	}
	if (!value)
		value = longest_prefix(&key);
	if (value) {
		j->identity = value->identity;
		j->class = value->class;
	} else {
		j->identity = j->class = family == 4 ? CLASS_WORLD4 : CLASS_WORLD6;
	}
}

/* True if the endpoint may use the packet's source address. The addresses of a fenced interface are unknown, so it may use any
 * address except one of another endpoint or of the host. */
static __always_inline int owns_source(const struct endpoint_value *e, const struct packet *p)
{
	if (e->flags & ENDPOINT_FENCED) {
		struct judgement whose = {};
		identify(e, p->family, p->source, &whose);
		return whose.class != CLASS_ENDPOINT && whose.class != CLASS_HOST;
	}
	struct prefix_key key = { .scope = bpf_htonl(e->id), .family = bpf_htonl(p->family) };

	key.bits = p->family == 4 ? 96 : 192;
	__builtin_memcpy(key.address, p->source, 16);
	return bpf_map_lookup_elem(&ng_source, &key) != 0;
}

/* True if (address, port) is one of namegate's own listeners. */
static __always_inline int is_listener(const struct packet *p, const __u32 *address, __be16 port, __u32 class)
{
	struct listener_key key = { .family = p->family, .port = port };

	if (p->later_fragment || (p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP))
		return 0;
	__builtin_memcpy(key.address, address, 16);
	if (bpf_map_lookup_elem(&ng_listeners, &key))
		return 1;
	if (class != CLASS_HOST)
		return 0;
	__builtin_memset(key.address, 0, 16);
	return bpf_map_lookup_elem(&ng_listeners, &key) != 0;
}

static __always_inline __u32 strength(__u32 verdict)
{
	return POLICY_STRENGTHS >> (verdict & 7) * 4 & 15;
}

/* Keeps the stronger of two verdicts, the verdict so far and this one, and the rule of the stronger verdict. A packet that an
 * audited rule denies passes if another entry allows it, and is reported. */
static __always_inline void merge(const struct policy_value *value, struct judgement *j)
{
	__u32 other = value->verdict;

	if (strength(other) > strength(j->verdict)) {
		other = j->verdict;
		j->verdict = value->verdict;
		j->rule = value->rule;
	}
	if (j->verdict == POLICY_AUDIT_DENY && (other == POLICY_ALLOW || other == POLICY_AUDIT))
		j->verdict = POLICY_AUDIT_PASS;
}

/* Makes one of the three lookups. */
static __always_inline void consult(const struct endpoint_value *e, const struct packet *p, __u32 identity,
				    struct judgement *j)
{
	struct policy_key key = {
		.bits = p->later_fragment ? POLICY_BITS_PROTOCOL : POLICY_BITS_PORT,
		.endpoint = bpf_htonl(e->id),
		.identity = bpf_htonl(identity),
		.protocol = p->protocol,
	};
	int has_ports = is_followed(p);

	if (has_ports)
		__builtin_memcpy(key.port, &p->target_port, 2);
	struct policy_value *value = bpf_map_lookup_elem(&ng_policy, &key);
	if (value)
		merge(value, j);
}

static __always_inline void judge(const struct endpoint_value *e, const struct packet *p, struct judgement *j)
{
	consult(e, p, j->identity, j);
	if (j->class != j->identity)
		consult(e, p, j->class, j);
	consult(e, p, 0, j);
	if (j->verdict == POLICY_AUDIT_PASS)
		j->verdict = POLICY_AUDIT;
	if (j->verdict == POLICY_WEAK_DENY)
		j->verdict = POLICY_DENY;
	/* No entry allows the packet, so the result is the same as if no entry matched. */
	if (j->verdict == POLICY_AUDIT_DENY)
		j->verdict = j->rule = 0;
}

static __always_inline int refuse(const struct endpoint_value *e, const struct packet *p,
				  const struct judgement *j, __u32 stat, __u8 reason)
{
	count(stat);
	report(e, p, j, EVENT_DENY, reason);
	return DROP;
}

/* Steps 6 to 8: policy, then adoption, then what the mode and the endpoint make of a refusal. */
static __always_inline int decide(const struct endpoint_value *e, const struct packet *p, struct judgement *j,
				  const struct conn_key *k, __u32 mode)
{
	__u8 reason = p->later_fragment ? REASON_FRAGMENT : REASON_POLICY;

	judge(e, p, j);
	if (j->verdict == POLICY_ALLOW) {
		count(STAT_ALLOW);
		return PASS;
	}
	if (j->verdict != POLICY_AUDIT && is_adopted(p, k, j->verdict == POLICY_DENY)) {
		count(STAT_ADOPTED);
		return PASS;
	}
	if (j->verdict == POLICY_AUDIT || mode == MODE_AUDIT || (e->flags & ENDPOINT_AUDIT)) {
		count(STAT_AUDIT);
		report(e, p, j, EVENT_AUDIT, reason);
		return PASS;
	}
	if (!(e->flags & ENDPOINT_ENFORCING)) {
		count(STAT_NOT_ENFORCING);
		return PASS;
	}
	return refuse(e, p, j, p->later_fragment ? STAT_DROP_FRAGMENT : STAT_DROP_POLICY, reason);
}

/* Steps 5 to 8 for a packet whose source and destination are known. */
static __always_inline int admit(const struct endpoint_value *e, const struct packet *p, struct judgement *j,
				 struct conn_key *k, __u32 mode)
{
	int pass;

	conn_key_of(e, p, 1, k);
	if (is_reply(p, k)) {
		count(STAT_REPLY);
		pass = PASS;
	} else {
		pass = decide(e, p, j, k, mode);
	}
	/* A refused FIN or RST still ends the endpoint's connection. */
	if (pass == PASS || (p->protocol == IPPROTO_TCP && (p->tcp_flags & (TCP_FIN | TCP_RST))))
		follow(p, k, 1);
	return pass;
}

#endif
