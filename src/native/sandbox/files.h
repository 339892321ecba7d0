/* This file makes the command's view of the file system. It is the caller's view, with a separate /proc and shared memory, a
 * private resolv.conf, and covers over the sockets of agents and services. The mounts belong to a user namespace in which the
 * command has no capability, so the command cannot undo them. In a user namespace that the command makes, the mounts are locked. */
#ifndef NAMEGATE_SANDBOX_FILES_H
#define NAMEGATE_SANDBOX_FILES_H

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "sandbox.h"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef MOUNT_ATTR_RDONLY
#define MOUNT_ATTR_RDONLY 1
struct mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* A path that does not exist or cannot be reached needs no cover, because the command can reach no more than this process. */
static bool is_absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP || error == ENAMETOOLONG;
}

static void cover_file(const char *path)
{
	if (mount("/dev/null", path, NULL, MS_BIND, NULL) < 0 && !is_absent(errno))
		fail("hide", errno, path);
}

static void cover_folder(const char *path)
{
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700,size=64m") < 0 && !is_absent(errno))
		fail("hide", errno, path);
}

/* Covers a path that the caller hides. Any failure ends the launcher, because the command would see the path. */
static void hide(const char *path)
{
	struct stat found;
	must(stat(path, &found) == 0, "hide", path);
	bool is_folder = S_ISDIR(found.st_mode);
	must(mount(is_folder ? "tmpfs" : "/dev/null", path, is_folder ? "tmpfs" : NULL, is_folder ? MS_NOSUID | MS_NODEV : MS_BIND,
		   is_folder ? "mode=0700,size=64m" : NULL) == 0,
	     "hide", path);
}

static void set_read_only(const char *path)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	must(syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attr, sizeof(attr)) == 0, "read-only", path);
}

/* A file that the command can read and cannot write, move or remove. */
static void lock_file(const char *path)
{
	must(mount(path, path, NULL, MS_BIND, NULL) == 0, "lock", path);
	set_read_only(path);
}

/* Makes a path read-only, because root can write some files of the kernel without any capability. */
static void make_read_only(const char *path)
{
	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0) {
		if (!is_absent(errno))
			fail("hide", errno, path);
		return;
	}
	set_read_only(path);
}

/* An empty folder for temporary files, as the system's own. */
static void replace_tmp(const char *path)
{
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0 && !is_absent(errno))
		fail("private-tmp", errno, path);
}

/* The view that the caller's options ask for. A path in a covered folder can be hidden, so covers come later. */
static void set_up_view(const struct options *options)
{
	for (int i = 0; i < options->hidden_count; i++)
		hide(options->hidden[i]);
	for (int i = 0; i < options->locked_count; i++)
		lock_file(options->locked[i]);
	if (options->private_tmp) {
		replace_tmp("/tmp");
		replace_tmp("/var/tmp");
	}
}

static void set_up_files(const struct options *options)
{
	char folder[PATH_MAX];
	bool placed = getcwd(folder, sizeof(folder)) != NULL;
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount", "/");
	if (options->read_only)
		set_read_only("/");
	must(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "proc", "/proc");
	if (mount(options->resolv, "/etc/resolv.conf", NULL, MS_BIND, NULL) == 0)
		must(mount(NULL, "/etc/resolv.conf", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) == 0, "resolv", "read-only");
	else if (!is_absent(errno))
		fail("resolv", errno, "/etc/resolv.conf");
	set_up_view(options);
	for (int i = 0; i < options->file_count; i++)
		cover_file(options->files[i]);
	for (int i = 0; i < options->folder_count; i++)
		cover_folder(options->folders[i]);
	if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0 && !is_absent(errno))
		fail("hide", errno, "/dev/shm");
	if (options->privileged) {
		static const char *const kernel[] = { "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/sys" };
		for (size_t i = 0; i < sizeof(kernel) / sizeof(*kernel); i++)
			make_read_only(kernel[i]);
	}
	/* The current folder may be covered now, so enter it again by its path. */
	if (placed)
		must(chdir(folder) == 0, "folder", folder);
	else
		must(chdir("/") == 0, "folder", "/");
}

#endif
