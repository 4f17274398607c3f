#pragma once

#include <memory>

#include "framework/distributed/communicator.hpp"

namespace quantrain {

/// The processes that mpirun, or another launcher of MPI, has started: one rank each.
///   int main() {
///     MpiRanks ranks;
///     fit(net, optimizer, loader, loss, {.epochs = 3, .shards = 8, .ranks = &ranks});
///   }
/// A program that is started without a launcher is the only rank. If a rank dies, the others say so
/// on standard error, with the line of remember(); their next call throws DistributedError, and a
/// process that makes no call ends within seconds. Needs the library quantrain::mpi.
class MpiRanks : public Communicator {
 public:
  /// Starts MPI, unless the program has done so. Collective.
  /// Throws: DistributedError if there is another MpiRanks, if MPI reports an error, or if the
  /// launcher started several processes and MPI sees one, because it is another MPI's launcher.
  MpiRanks();
  /// Ends MPI, if the constructor has started it. If an exception ends the scope in one rank, the
  /// other ranks get it as DistributedError. After the death of a rank, ends the process, because
  /// MPI cannot end.
  ~MpiRanks() override;

  int64_t rank() const override;
  int64_t size() const override;
  std::string name(int64_t rank) const override;
  void remember(const std::string& line) override;

  /// Whether a launcher of MPI has started this process.
  static bool is_launched();

 protected:
  std::vector<Bytes> gather_bytes(Bytes own) override;
  std::unique_ptr<Exchange> start_bytes(int tag,
                                        Bytes bytes,
                                        const std::vector<Slice>& slices,
                                        const std::vector<int64_t>& sizes) override;
  void abandon() override;

 private:
  struct State;
  class Messages;
  void finish(int code, void* request);  // an MPI_Request
  [[noreturn]] void lose(int code);
  void connect();

  std::unique_ptr<State> state_;
};

}  // namespace quantrain
