/* This file has the code of the command's process and of process 1 of its PID namespace. Process 1 starts the command, sends it
 * signals for the gate, hands the terminal over, and reaps processes. When process 1 ends, the kernel ends every process in the
 * PID namespace. The gate is the namegate process that started this program.
 *
 * The command leads a process group of its own. That group has the terminal if the caller's group had it. So keys such as ^C
 * reach only the command, and only once. Signals to the gate are forwarded to the command.
 *
 * - Lines to the gate: `started`, `stopped SIGNAL`, `exit CODE`, `killed SIGNAL`
 * - Lines from the gate: `signal N`, `continue 0|1` (1: with the terminal) */
#ifndef NAMEGATE_SANDBOX_COMMAND_H
#define NAMEGATE_SANDBOX_COMMAND_H

#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "filter.h"
#include "namespaces.h"
#include "sandbox.h"

/* SIGTTOU is blocked in this process, so a process group without the terminal can take it. */
static void give_terminal(pid_t group)
{
	int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (terminal < 0)
		return;
	tcsetpgrp(terminal, group);
	close(terminal);
}

static void default_signals(void)
{
	sigset_t none;
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Reads one octet from a pipe, or its end. Then the other side is done. */
static void wait_for(int fd)
{
	char octet;
	while (read(fd, &octet, 1) < 0 && errno == EINTR)
		;
}

/* If execvp() cannot look into a folder of PATH, it reports EACCES even for a command that does not exist. This function tells
 * the two cases apart. */
static bool is_anywhere(const char *name)
{
	char path[PATH_MAX];
	const char *folders = getenv("PATH");
	if (strchr(name, '/') || !folders)
		return true;
	while (*folders) {
		size_t length = strcspn(folders, ":");
		int size = snprintf(path, sizeof(path), "%.*s/%s", (int)length, folders, name);
		if (size > 0 && size < (int)sizeof(path) && access(path, F_OK) == 0)
			return true;
		folders += length + (folders[length] == ':');
	}
	return false;
}

/* A successful exec closes `faults`. Otherwise this function writes the errno to it. */
static _Noreturn void run_command(const struct options *options, int mapped, int faults)
{
	pid_t self = getpid();
	setpgid(0, 0);
	if (options->foreground)
		give_terminal(self);
	if (options->privileged) {
		must(unshare(CLONE_NEWUSER) == 0, "userns", "unshare");
		must(write(faults, "", 1) == 1, "userns", "pipe"); /* now the parent can write the maps */
		wait_for(mapped);
	}
	keep_capabilities(options->privileged ? KEPT : 0);
	must(set_filter(), "seccomp", "");
	default_signals();
	syscall(SYS_close_range, CONTROL, faults - 1, 0);
	syscall(SYS_close_range, faults + 1, ~0u, 0);
	execvp(options->command[0], options->command);
	int error = errno == EACCES && !is_anywhere(options->command[0]) ? ENOENT : errno;
	if (write(faults, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
}

/* Starts the process of the command, and returns when the command runs. */
static pid_t start_command(const struct options *options)
{
	int mapped[2], faults[2], error = 0;
	char octet;
	must(pipe2(mapped, O_CLOEXEC) == 0 && pipe2(faults, O_CLOEXEC) == 0, "pipe", "");
	pid_t child = fork();
	must(child >= 0, "fork", "");
	if (child == 0) {
		/* The command waits for the end of this pipe, so the child must not hold the other side. */
		close(mapped[1]);
		run_command(options, mapped[0], faults[1]);
	}
	close(mapped[0]);
	close(faults[1]);
	if (options->privileged && read(faults[0], &octet, 1) == 1) {
		must(map_all("uid_map", child), "userns", "uid_map");
		must(map_all("gid_map", child), "userns", "gid_map");
	}
	close(mapped[1]);
	/* From here on no process in the PID namespace has capabilities over the network namespace. */
	keep_capabilities(0);
	if (read(faults[0], &error, sizeof(error)) == sizeof(error))
		fail("exec", error, options->command[0]);
	close(faults[0]);
	report("started\n");
	return child;
}

/* Reaps each process that ended, and reports a stop of the command. When the command ends, this process ends and so ends every
 * other process. */
static void reap(pid_t command)
{
	int status;
	char line[64];
	for (;;) {
		pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL);
		if (pid <= 0)
			return;
		if (pid != command)
			continue;
		if (WIFSTOPPED(status)) {
			snprintf(line, sizeof(line), "stopped %d\n", WSTOPSIG(status));
			report(line);
			continue;
		}
		if (WIFSIGNALED(status))
			snprintf(line, sizeof(line), "killed %d\n", WTERMSIG(status));
		else
			snprintf(line, sizeof(line), "exit %d\n", WEXITSTATUS(status));
		report(line);
		_exit(0);
	}
}

static void obey(const char *line, pid_t command)
{
	int number = 0;
	if (sscanf(line, "signal %d", &number) == 1) {
		kill(command, number);
	} else if (sscanf(line, "continue %d", &number) == 1) {
		if (number == 1)
			give_terminal(command);
		kill(-command, SIGCONT);
	}
}

/* Obeys the lines of the gate. If the gate ends, this process ends. */
static void read_lines(pid_t command)
{
	static char buffer[256];
	static size_t used;
	ssize_t got = recv(CONTROL, buffer + used, sizeof(buffer) - 1 - used, MSG_DONTWAIT);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		_exit(1);
	if (got < 0)
		return;
	used += (size_t)got;
	buffer[used] = 0;
	char *line = buffer, *end;
	while ((end = strchr(line, '\n'))) {
		*end = 0;
		obey(line, command);
		line = end + 1;
	}
	used = strlen(line);
	memmove(buffer, line, used);
	if (used == sizeof(buffer) - 1)
		_exit(1);
}

/* Process 1 of the PID namespace. */
static _Noreturn void run_first(const struct options *options)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_DUMPABLE, 0);
	int children = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	must(children >= 0, "signalfd", "");
	pid_t command = start_command(options);
	struct pollfd ready[2] = { { CONTROL, POLLIN, 0 }, { children, POLLIN, 0 } };
	for (;;) {
		struct signalfd_siginfo seen;
		reap(command);
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		while (read(children, &seen, sizeof(seen)) == sizeof(seen))
			;
		if (ready[0].revents)
			read_lines(command);
	}
}

#endif
