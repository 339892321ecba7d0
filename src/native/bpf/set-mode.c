/* set-mode FOLDER enforce|audit|bypass writes the mode into the map that is pinned in FOLDER, and does nothing else.
 * `bin/namegate datapath mode` runs it before Node starts, so that break-glass mode takes effect within a millisecond. The Node
 * command that follows sets the mode again and reports it. set-mode uses only libc and prints nothing. Its exit code is 0 or 1. */

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const modes[] = { "enforce", "audit", "bypass" }; /* MODE_* in layout.h */

static long bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int main(int argc, char **argv)
{
	char path[4096];
	uint32_t key = 0;
	uint32_t value = 0;

	if (argc != 3)
		return 1;
	while (value < 3 && strcmp(argv[2], modes[value]) != 0)
		value++;
	int length = snprintf(path, sizeof(path), "%s/ng_mode", argv[1]);
	if (value == 3 || length < 0 || length >= (int)sizeof(path))
		return 1;

	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	long map = bpf(BPF_OBJ_GET, &attr);
	if (map < 0)
		return 1;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uint64_t)(uintptr_t)&key;
	attr.value = (uint64_t)(uintptr_t)&value;
	attr.flags = BPF_ANY;
	return bpf(BPF_MAP_UPDATE_ELEM, &attr) < 0;
}
