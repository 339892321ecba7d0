/* This file makes namespaces and drops capabilities. An unprivileged caller gets a user namespace in which the user id stays the
 * same. That user namespace owns every other namespace of the sandbox. From outside it, the caller has all capabilities over it
 * (user_namespaces(7)). So the gate can set rules in the sandbox. The command is inside and has no capabilities, so it cannot. */
#ifndef NAMEGATE_SANDBOX_NAMESPACES_H
#define NAMEGATE_SANDBOX_NAMESPACES_H

#include <linux/capability.h>
#include <sys/syscall.h>

#include "sandbox.h"

#ifndef PR_CAP_AMBIENT
#define PR_CAP_AMBIENT 47
#define PR_CAP_AMBIENT_CLEAR_ALL 4
#endif

#define BIT(capability) (UINT64_C(1) << (capability))
/* The capabilities of a command whose caller is root: power over files, users and its own processes, in a user namespace that
 * owns no other namespace. */
#define KEPT (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID))

static void map_self(uid_t uid, gid_t gid)
{
	char line[64];
	must(write_file("/proc/self/setgroups", "deny"), "userns", "setgroups");
	snprintf(line, sizeof(line), "%u %u 1", uid, uid);
	must(write_file("/proc/self/uid_map", line), "userns", "uid_map");
	snprintf(line, sizeof(line), "%u %u 1", gid, gid);
	must(write_file("/proc/self/gid_map", line), "userns", "gid_map");
}

static void enter_user_namespace(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	must(unshare(CLONE_NEWUSER) == 0, "userns", "unshare");
	map_self(uid, gid);
}

/* Maps every user of this namespace to the same number in the user namespace of a child. */
static bool map_all(const char *kind, pid_t child)
{
	char path[64], text[4096], line[64];
	unsigned int inside, outside, count;
	size_t length = 0;
	snprintf(path, sizeof(path), "/proc/self/%s", kind);
	FILE *own = fopen(path, "re");
	if (!own)
		return false;
	while (fscanf(own, "%u %u %u", &inside, &outside, &count) == 3) {
		int size = snprintf(line, sizeof(line), "%u %u %u\n", inside, inside, count);
		if (length + (size_t)size >= sizeof(text))
			break;
		memcpy(text + length, line, (size_t)size);
		length += (size_t)size;
	}
	fclose(own);
	text[length] = 0;
	snprintf(path, sizeof(path), "/proc/%d/%s", child, kind);
	return write_file(path, text);
}

static bool set_capabilities(uint64_t kept)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = {};
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = (uint32_t)(kept >> (32 * i));
	return syscall(SYS_capset, &head, data) == 0;
}

/* Drops all capabilities except `kept`. No program that runs later regains a dropped capability. */
static void keep_capabilities(uint64_t kept)
{
	for (int i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++)
		if (i >= 64 || !(kept & BIT(i)))
			must(prctl(PR_CAPBSET_DROP, i) == 0, "capabilities", "bounding set");
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	must(set_capabilities(kept), "capabilities", "capset");
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "capabilities", "no_new_privs");
}

#endif
