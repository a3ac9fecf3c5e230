// A process looked at before each of its system calls: what its files are then is what a kill at that moment leaves.
#pragma once

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace cautious {

// Runs `work` in a child that stands still while look(n) is called before its n-th system call, counted from 1; if that is
// false, the child is killed. The number of calls looked at; 0 where the system lets no process trace its child.
template <class Work, class Look>
int traced(const Work& work, const Look& look) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(3);
    ::raise(SIGSTOP);
    work();
    ::_exit(0);
  }
  int status = 0, calls = 0;
  ::waitpid(child, &status, 0);
  for (bool before = true; WIFSTOPPED(status); before = !before) {  // every call stops the child twice: before and after
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (before && WIFSTOPPED(status) && !look(++calls)) ::kill(child, SIGKILL);
  }
  return calls;
}

}  // namespace cautious
