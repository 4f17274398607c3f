#include "framework/distributed/mpi/lifeline.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/splitmix64.hpp"

namespace quantrain {
namespace {

using Clock = std::chrono::steady_clock;

/// What goes over a connection, in the byte order of the machine: all have the same one.
struct Message {
  enum Kind : uint64_t { kHello = 1, kBye = 2, kDied = 3 };
  uint64_t kind = 0;
  uint64_t token = 0;
  int64_t rank = 0;
};

bool send_message(int socket, const Message& message) {
  return ::send(socket, &message, sizeof message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

/// Waits until the socket has something to read (or `events`), or until the time.
bool wait_for(int socket, short events, Clock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waiting{socket, events, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left > 0 ? left : 0));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

/// Whether a whole message came.
bool receive_message(int socket, Message& message, Clock::time_point until) {
  auto* const bytes = reinterpret_cast<uint8_t*>(&message);
  for (size_t got = 0; got < sizeof message;) {
    if (!wait_for(socket, POLLIN, until)) return false;
    const ssize_t n = ::recv(socket, bytes + got, sizeof message - got, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<size_t>(n);
  }
  return true;
}

/// A machine that disappears without closing its connections is noticed within about ten seconds.
void keep_alive(int socket) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
#ifdef TCP_KEEPIDLE
  set(IPPROTO_TCP, TCP_KEEPIDLE, 4);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
#endif
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return all;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    sockaddr_in address{};
    std::memcpy(&address, at->ifa_addr, sizeof address);
    if (ntohl(address.sin_addr.s_addr) >> 24 == 127) continue;
    if (::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr)
      all.emplace_back(text);
  }
  ::freeifaddrs(first);
  return all;
}

/// A socket that is connected to the address, or -1.
int connected_socket(const std::string& number, uint16_t port, Clock::time_point until) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, number.c_str(), &address.sin_addr) != 1) return -1;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return -1;
  int error = 0;
  socklen_t size = sizeof error;
  const bool started =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EINPROGRESS;
  if (started && wait_for(socket, POLLOUT, until) &&
      ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
    return socket;
  }
  ::close(socket);
  return -1;
}

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

std::string Lifeline::host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

Lifeline::Lifeline(int64_t rank, int64_t size, std::function<void(int64_t rank)> on_death)
    : rank_(rank),
      size_(size),
      on_death_(std::move(on_death)),
      sockets_(static_cast<size_t>(rank == 0 ? size : 1), -1),
      left_(sockets_.size()) {
  if (::pipe(wake_) != 0) throw DataError("ranks", "no pipe: ", std::strerror(errno));
}

Lifeline::~Lifeline() {
  for (const int socket : sockets_) {
    if (socket >= 0) send_message(socket, {Message::kBye, token_, rank_});
  }
  stop_thread();
  close_sockets();
  for (const int file : {wake_[0], wake_[1], listening_}) {
    if (file >= 0) ::close(file);
  }
}

void Lifeline::stop_thread() {
  if (!thread_.joinable()) return;
  const uint8_t end = 0;
  static_cast<void>(!::write(wake_[1], &end, 1));
  thread_.join();
}

void Lifeline::close_sockets() {
  for (int& socket : sockets_) {
    if (socket >= 0) ::close(std::exchange(socket, -1));
  }
}

void Lifeline::drop() {
  stop_thread();
  close_sockets();
}

void Lifeline::forget(int64_t rank) {
  int& socket = sockets_[static_cast<size_t>(rank)];
  if (socket >= 0) ::close(std::exchange(socket, -1));
}

Lifeline::Address Lifeline::listen() {
  const auto now = Clock::now().time_since_epoch().count();
  if (::getentropy(&token_, sizeof token_) != 0)
    token_ = SplitMix64::mix(static_cast<uint64_t>(now) ^ static_cast<uint64_t>(::getpid()) << 40);
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (listening_ < 0 || ::bind(listening_, raw, size) != 0 ||
      ::listen(listening_, static_cast<int>(size_)) != 0 ||
      ::getsockname(listening_, raw, &size) != 0) {
    return {.host = host_name()};
  }
  return {host_name(), own_addresses(), ntohs(address.sin_port), token_};
}

bool Lifeline::connect(const Address& address, double seconds) {
  token_ = address.token;
  if (address.port == 0) return false;
  std::vector<std::string> numbers = address.addresses;
  if (address.host == host_name()) numbers.insert(numbers.begin(), "127.0.0.1");
  const double each = seconds / static_cast<double>(numbers.size() + 1);
  for (const std::string& number : numbers) {
    const int socket = connected_socket(number, address.port, after(each));
    if (socket < 0) continue;
    keep_alive(socket);
    if (send_message(socket, {Message::kHello, token_, rank_})) {
      sockets_[0] = socket;
      return true;
    }
    ::close(socket);
  }
  return false;
}

int64_t Lifeline::accept(double seconds) {
  const Clock::time_point until = after(seconds);
  int64_t lacking = size_ - 1;
  while (lacking > 0 && listening_ >= 0 && wait_for(listening_, POLLIN, until)) {
    const int socket = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) continue;
    Message hello;
    const bool is_ours = receive_message(socket, hello, std::min(until, after(1.0))) &&
                         hello.kind == Message::kHello && hello.token == token_ && hello.rank > 0 &&
                         hello.rank < size_ && sockets_[static_cast<size_t>(hello.rank)] < 0;
    if (!is_ours) {
      ::close(socket);
      continue;
    }
    keep_alive(socket);
    sockets_[static_cast<size_t>(hello.rank)] = socket;
    --lacking;
  }
  if (listening_ >= 0) ::close(std::exchange(listening_, -1));
  return lacking;
}

void Lifeline::watch() {
  thread_ = std::thread([this] { run(); });
}

void Lifeline::run() {
  while (dead_ < 0) {
    std::vector<pollfd> waiting{{wake_[0], POLLIN, 0}};
    std::vector<size_t> whose{0};
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (sockets_[i] < 0 || left_[i]) continue;
      waiting.push_back({sockets_[i], POLLIN, 0});
      whose.push_back(i);
    }
    if (::poll(waiting.data(), static_cast<nfds_t>(waiting.size()), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (waiting[0].revents != 0) return;
    for (size_t k = 1; k < waiting.size() && dead_ < 0; ++k) {
      if (waiting[k].revents != 0) left_[whose[k]] = hear(whose[k]);
    }
  }
}

/// Reads from a connection. Returns whether the other side took leave.
bool Lifeline::hear(size_t i) {
  Message message;
  const bool whole = receive_message(sockets_[i], message, after(1.0));
  if (whole && message.kind == Message::kBye) return true;
  const bool told = whole && message.kind == Message::kDied && rank_ != 0;
  report(told ? message.rank : static_cast<int64_t>(i));
  return false;
}

void Lifeline::report(int64_t rank) {
  dead_ = rank;
  if (rank_ == 0) {
    for (size_t i = 1; i < sockets_.size(); ++i) {
      if (sockets_[i] >= 0 && static_cast<int64_t>(i) != rank)
        send_message(sockets_[i], {Message::kDied, token_, rank});
    }
  }
  on_death_(rank);
}

}  // namespace quantrain
