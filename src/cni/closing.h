/* This file closes an interface: a BPF program of two instructions drops every packet in both directions. The program is at the
 * place where the eBPF datapath puts its own programs (src/datapath/ebpf/hooks/tc-programs.ts). So the daemon replaces it in one
 * step when it attaches the endpoint. If programs are at that place already, they stay, because the daemon judges the packets. */
#ifndef NAMEGATE_CNI_CLOSING_H
#define NAMEGATE_CNI_CLOSING_H

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <sys/syscall.h>

#include "cni.h"
#include "veth.h"

#ifndef TC_H_CLSACT
#define TC_H_CLSACT TC_H_INGRESS
#define TC_H_MIN_INGRESS 0xFFF2U
#define TC_H_MIN_EGRESS 0xFFF3U
#endif
#ifndef TCA_BPF_FLAG_ACT_DIRECT
#define TCA_BPF_FLAG_ACT_DIRECT 1
#endif

/* TC_HANDLE and TC_PRIORITY in tc-programs.ts. */
#define OWN_HANDLE 0x4e47
#define OWN_PRIORITY 1

/* Loads the program. Returns its descriptor, or -errno. */
static int load_drop(void)
{
	static const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = TC_ACT_SHOT },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insn_cnt = sizeof(program) / sizeof(*program);
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.license = (uint64_t)(uintptr_t)"Apache-2.0";
	memcpy(attr.prog_name, "ng_cni_closed", sizeof("ng_cni_closed"));
	long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

static struct tcmsg *begin_tc(struct message *message, int type, int index)
{
	struct tcmsg *fixed = begin_message(message, type, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sizeof(*fixed));
	fixed->tcm_family = AF_UNSPEC;
	fixed->tcm_ifindex = index;
	return fixed;
}

/* Returns 0 if the kernel has made the object or had it before, or -errno. */
static int make(int fd, struct message *message)
{
	char octets[1024];
	int error = exchange(fd, message, octets, sizeof(octets));
	return error == -EEXIST || error >= 0 ? 0 : error;
}

static int add_filter(int fd, int index, uint32_t side, int program)
{
	struct message message;
	uint32_t descriptor = (uint32_t)program, flags = TCA_BPF_FLAG_ACT_DIRECT;
	struct tcmsg *fixed = begin_tc(&message, RTM_NEWTFILTER, index);
	fixed->tcm_handle = OWN_HANDLE;
	fixed->tcm_parent = TC_H_MAKE(TC_H_CLSACT, side);
	fixed->tcm_info = TC_H_MAKE(OWN_PRIORITY << 16, htons(ETH_P_ALL));
	add_attribute(&message, TCA_KIND, "bpf", sizeof("bpf"));
	struct rtattr *options = add_attribute(&message, TCA_OPTIONS, NULL, 0);
	add_attribute(&message, TCA_BPF_FD, &descriptor, sizeof(descriptor));
	add_attribute(&message, TCA_BPF_NAME, "ng_cni_closed", sizeof("ng_cni_closed"));
	add_attribute(&message, TCA_BPF_FLAGS, &flags, sizeof(flags));
	options->rta_len = (uint16_t)((char *)&message + message.head.nlmsg_len - (char *)options);
	return make(fd, &message);
}

/* Closes the interface. Returns 0, or -errno: then the interface can be open. */
static int close_interface(int fd, int index)
{
	struct message message;
	int program = load_drop();
	if (program < 0)
		return program;
	struct tcmsg *fixed = begin_tc(&message, RTM_NEWQDISC, index);
	fixed->tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	fixed->tcm_parent = TC_H_CLSACT;
	add_attribute(&message, TCA_KIND, "clsact", sizeof("clsact"));
	int error = make(fd, &message);
	if (error == 0)
		error = add_filter(fd, index, TC_H_MIN_INGRESS, program);
	if (error == 0)
		error = add_filter(fd, index, TC_H_MIN_EGRESS, program);
	close(program);
	return error;
}

#endif
