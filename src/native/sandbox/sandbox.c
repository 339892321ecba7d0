/* sandbox run COMMAND... is the launcher of `namegate exec`. It makes the namespaces and runs the command in them. It is
 * a process of its own, because Node has many threads and a user namespace needs a process with one thread. It uses no library
 * but libc. The gate is the namegate process that started it.
 *
 * Descriptor 3 first carries the options from the gate (options.h), so that the process list does not show paths of the caller.
 * Then it carries lines to and from the gate. Descriptor 4 carries sockets of the network namespace to the gate. The gate
 * receives these sockets, fences the namespace, sets up the uplink, and then writes `go`. Only then does a process exist that
 * could run the command. An earlier failure is one line `fail STEP ERRNO DETAIL`, so the command never runs in a half-built
 * sandbox. The launcher stays outside the command's PID namespace, and dies with the gate (PR_SET_PDEATHSIG). */
#include "sandbox.h"

#include "command.h"
#include "files.h"
#include "forwarding.h"
#include "guard.h"
#include "namespaces.h"
#include "options.h"
#include "publish.h"
#include "sockets.h"

static void die_with(pid_t gate)
{
	must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "pdeathsig", "");
	if (getppid() != gate)
		_exit(1);
}

static void wait_for_go(void)
{
	char line[4] = "";
	for (size_t used = 0; used < 3;) {
		ssize_t got = recv(CONTROL, line + used, 3 - used, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			_exit(1);
		used += (size_t)got;
	}
	if (strcmp(line, "go\n") != 0)
		_exit(1);
}

/* Forks process 1 of the command's namespaces, which has its own view of the files. */
static pid_t start_first(const struct options *options)
{
	int alive[2];
	must(pipe2(alive, O_CLOEXEC) == 0, "pipe", "");
	must(unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) == 0, "namespaces", "unshare");
	pid_t first = fork();
	must(first >= 0, "fork", "");
	if (first == 0) {
		/* For the first process of a namespace getppid() returns 0, so this pipe shows whether the launcher still lives. */
		struct pollfd gone = { alive[0], POLLIN, 0 };
		close(alive[1]);
		must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "pdeathsig", "");
		if (poll(&gone, 1, 0) != 0)
			_exit(1);
		set_up_files(options);
		run_first(options);
	}
	close(alive[0]);
	return first;
}

int main(int argc, char **argv)
{
	static struct options options;
	int status;
	sigset_t all;
	pid_t gate = getppid();
	if (argc > 2 && strcmp(argv[1], "guard") == 0)
		return run_guard(argv + 2);
	if (argc > 2 && strcmp(argv[1], "forward") == 0)
		return run_forward(argc - 2, argv + 2);
	if (argc < 3 || strcmp(argv[1], "run") != 0)
		fail("options", EINVAL, "incomplete");
	syscall(SYS_close_range, SOCKETS + 1, ~0u, 0);
	die_with(gate);
	receive_options(&options);
	options.command = argv + 2;
	open_published(&options);
	if (!options.privileged)
		enter_user_namespace();
	/* A change of credentials clears the parent-death signal, so it is set again. */
	die_with(gate);
	prctl(PR_SET_DUMPABLE, 1); /* the gate reads this process's namespace in /proc */
	must(unshare(CLONE_NEWNET) == 0, "netns", "unshare");
	hand_out_sockets();
	report("sockets\n");
	start_publishing();
	wait_for_go();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	pid_t first = start_first(&options);
	keep_capabilities(0);
	while (waitpid(first, &status, 0) < 0 && errno == EINTR)
		;
	if (options.foreground)
		give_terminal(getpgrp());
	return 0;
}
