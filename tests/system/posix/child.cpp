#include "tests/child.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>

namespace quantrain::test {

Child in_child(const std::function<std::string()>& f, unsigned seconds) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) return {-1, "no pipe"};
  const pid_t process = ::fork();
  if (process == 0) {
    ::alarm(seconds);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    const auto peak = [] {
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      return int64_t{usage.ru_maxrss};
    };
    const int64_t before = peak();
    std::string text;
    try {
      text = f();
    } catch (const std::exception& error) {
      text = error.what();
    }
    text.insert(0, std::to_string(peak() - before) + ' ');
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t n = ::write(ends[1], text.data() + sent, text.size() - sent);
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  Child child;
  std::string received;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    received.append(buffer, static_cast<size_t>(n));
  ::close(ends[0]);
  int status = 0;
  if (process < 0 || ::waitpid(process, &status, 0) != process) return {-1, "no process"};
  if (WIFSIGNALED(status)) child.signal = WTERMSIG(status);
  child.was_killed = child.signal == SIGKILL;
  const size_t space = received.find(' ');
  if (space == std::string::npos) return child;
  child.kilobytes = std::stoll(received.substr(0, space));
  child.text = received.substr(space + 1);
  return child;
}

void kill_child() {
  std::raise(SIGKILL);
  std::abort();  // not reached
}

}  // namespace quantrain::test
