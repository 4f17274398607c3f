#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace quantrain {

/// Notices the death of a process: each one keeps a TCP connection (IPv4) to rank 0, which the
/// system closes when a process ends in whatever way, and rank 0 tells the others. A thread waits
/// for that. MPI itself may wait for a dead process forever.
class Lifeline {
 public:
  /// Where rank 0 listens.
  struct Address {
    std::string host;                      ///< name of the machine
    std::vector<std::string> addresses{};  ///< numbers of its network interfaces
    uint16_t port = 0;
    uint64_t token = 0;  ///< what a rank says first, so that nothing else connects
  };

  /// on_death(rank) runs once, in the thread. It should end the process.
  Lifeline(int64_t rank, int64_t size, std::function<void(int64_t rank)> on_death);
  ~Lifeline();  ///< takes leave of the others
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  /// Rank 0 first calls listen(), the others get its address and call connect(), and rank 0 calls
  /// accept(), which waits up to `seconds` for all. Without a connection a death goes unnoticed
  /// here. Returns how many ranks lack one.
  Address listen();
  bool connect(const Address& address, double seconds = 10.0);
  int64_t accept(double seconds = 10.0);
  /// Whether there is a connection to this rank; of ranks other than 0, only to rank 0.
  bool has(int64_t rank) const { return sockets_[static_cast<size_t>(rank)] >= 0; }
  /// Closes a connection that the other side does not have. Before watch().
  void forget(int64_t rank);
  /// Starts the thread.
  void watch();
  /// Closes all connections without leave: for the others, this process is dead.
  void drop();

  /// The first rank that died, or -1.
  int64_t dead() const { return dead_; }

  static std::string host_name();

 private:
  void stop_thread();
  void close_sockets();
  void run();
  bool hear(size_t i);
  void report(int64_t rank);

  int64_t rank_;
  int64_t size_;
  std::function<void(int64_t rank)> on_death_;
  uint64_t token_ = 0;
  int listening_ = -1;
  int wake_[2] = {-1, -1};
  std::vector<int> sockets_;  // of rank 0: to each rank; of others: [0] to rank 0; -1: none
  std::vector<bool> left_;    // took leave
  std::atomic<int64_t> dead_ = -1;
  std::thread thread_;
};

}  // namespace quantrain
