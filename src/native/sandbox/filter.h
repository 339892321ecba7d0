/* This seccomp filter refuses, in every process of the command, system calls that bypass a network namespace:
 * - sockets of families other than UNIX, IPv4, IPv6 and netlink, because vsock and similar families ignore namespaces
 * - io_uring, because it makes sockets without the socket call
 * - ioctls that push keys into the caller's terminal
 *
 * The filter allows all other calls. It treats calls of the machine's second architecture in the same way. */
#ifndef NAMEGATE_SANDBOX_FILTER_H
#define NAMEGATE_SANDBOX_FILTER_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "sandbox.h"

struct calls {
	uint32_t arch;
	/* Call numbers. NONE: the architecture has no such call. */
	uint32_t socket, socketcall, socketpair, ioctl, io_uring_setup;
};

#define NONE 0xffffffffu
#define KEYS_PUSHED 0x5412 /* TIOCSTI */
#define KEYS_PASTED 0x541c /* TIOCLINUX */

static const struct calls architectures[] = {
#if defined(__x86_64__)
	{ AUDIT_ARCH_X86_64, 41, NONE, 53, 16, 425 },
	{ AUDIT_ARCH_I386, 359, 102, 360, 54, 425 },
#elif defined(__aarch64__)
	{ AUDIT_ARCH_AARCH64, 198, NONE, 199, 29, 425 },
	{ AUDIT_ARCH_ARM, 281, NONE, 288, 54, 425 },
#elif defined(__riscv) && __riscv_xlen == 64
	{ AUDIT_ARCH_RISCV64, 198, NONE, 199, 29, 425 },
#else
#error "seccomp numbers of this architecture are not known"
#endif
};

#define PROGRAM_MAX 96

struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned short length;
};

static void add(struct program *p, uint16_t code, uint8_t yes, uint8_t no, uint32_t k)
{
	p->code[p->length++] = (struct sock_filter){ code, yes, no, k };
}

static void load(struct program *p, size_t offset) { add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset); }
static void answer(struct program *p, uint32_t what) { add(p, BPF_RET | BPF_K, 0, 0, what); }
/* Skips `over` instructions if the accumulator is not k. */
static void unless_equal(struct program *p, uint32_t k, uint8_t over) { add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, over, k); }

#define REFUSE(error) (SECCOMP_RET_ERRNO | ((error) & SECCOMP_RET_DATA))
/* Arguments have 64 bits. For an int only the low 32 bits matter. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#else
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + 8 * (i) + 4)
#endif

static void add_refused_call(struct program *p, uint32_t nr)
{
	if (nr == NONE)
		return;
	unless_equal(p, nr, 1);
	answer(p, REFUSE(ENOSYS));
}

static void add_families(struct program *p, uint32_t nr)
{
	static const uint32_t families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	unless_equal(p, nr, 10);
	load(p, ARGUMENT(0));
	for (size_t i = 0; i < 4; i++) {
		unless_equal(p, families[i], 1);
		answer(p, SECCOMP_RET_ALLOW);
	}
	answer(p, REFUSE(EAFNOSUPPORT));
}

static void add_architecture(struct program *p, const struct calls *calls)
{
	load(p, offsetof(struct seccomp_data, arch));
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, calls->arch);
	struct sock_filter *skip = &p->code[p->length - 1];
	unsigned short begin = p->length;
	load(p, offsetof(struct seccomp_data, nr));
	add_refused_call(p, calls->socketcall);
	add_refused_call(p, calls->io_uring_setup);
	add_families(p, calls->socket);
	add_families(p, calls->socketpair);
	unless_equal(p, calls->ioctl, 5);
	load(p, ARGUMENT(1));
	add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, KEYS_PUSHED);
	unless_equal(p, KEYS_PASTED, 1);
	answer(p, REFUSE(EPERM));
	answer(p, SECCOMP_RET_ALLOW);
	/* x32 numbers its calls from here on. */
	add(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000);
	answer(p, REFUSE(ENOSYS));
	answer(p, SECCOMP_RET_ALLOW);
	skip->jf = (uint8_t)(p->length - begin);
}

/* Installs the filter; needs no_new_privs. Returns false and sets errno on failure. */
static bool set_filter(void)
{
	struct program program = { .length = 0 };
	for (size_t i = 0; i < sizeof(architectures) / sizeof(*architectures); i++)
		add_architecture(&program, &architectures[i]);
	answer(&program, REFUSE(ENOSYS)); /* an unexpected architecture */
	struct sock_fprog loaded = { program.length, program.code };
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded) == 0;
}

#endif
