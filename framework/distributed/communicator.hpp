#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/core/error.hpp"

namespace quantrain {

/// Another process of a distributed training failed, died or does not fit.
class DistributedError : public Error {
  using Error::Error;
};

/// The processes of one training, each with a number, its rank. All of them make the same calls in
/// the same order, from one thread each. framework/distributed/mpi/mpi.hpp has the one of MPI.
class Communicator {
 public:
  using Bytes = std::vector<uint8_t>;

  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  /// Names a rank in messages: "rank 3 (process 512 on node2)".
  virtual std::string name(int64_t rank) const = 0;
  bool is_first() const { return rank() == 0; }

  /// Every rank's bytes, in the order of the ranks.
  /// Throws: DistributedError naming the rank, in all ranks, if one has called fail() instead, or
  /// died. From then on, every call throws it.
  std::vector<Bytes> all_gather(std::span<const uint8_t> own);
  /// Sends parts[r] to rank r. Returns what each rank sent to this one. Call it only after
  /// expect_exchange(), because it does not wait for fail().
  /// Throws: DistributedError if a rank died.
  std::vector<Bytes> exchange(const std::vector<Bytes>& parts);
  /// Says, right after an all_gather() that all ranks have passed, that exchange() is their next
  /// call. From here to its end, fail() means the death of this rank, as within any other call.
  void expect_exchange() { in_call_ = true; }
  /// Rank 0's bytes; those of other ranks are not used.   Throws: as all_gather().
  Bytes broadcast(std::span<const uint8_t> own);
  std::string broadcast(const std::string& own);
  /// Waits for all ranks.   Throws: as all_gather().
  void barrier() { all_gather({}); }

  /// Says, in place of the next all_gather(), that this rank gives up; then the other ranks' calls
  /// throw an error with this text. If an exception, such as std::bad_alloc, has left a call that
  /// others may still be in, this rank is dead for them. Does nothing if a rank has failed before.
  void fail(const std::string& text) noexcept;
  bool failed() const { return !failure_.empty(); }

  /// A line that is printed if a rank dies, such as where the last checkpoint is.
  virtual void remember(const std::string& line) { remembered_ = line; }

  /// Number of bytes that this rank has sent to others.
  int64_t bytes_sent() const { return bytes_sent_; }

 protected:
  Communicator() = default;
  /// As all_gather() and exchange(), without fail().
  virtual std::vector<Bytes> gather_bytes(Bytes own) = 0;
  virtual std::vector<Bytes> exchange_bytes(const std::vector<Bytes>& parts) = 0;
  /// Makes this rank dead for the others, without a call that they would have to answer.
  virtual void abandon() = 0;
  /// Throws DistributedError with the text and remember()'s line; all later calls throw it, too.
  [[noreturn]] void give_up(const std::string& text);
  const std::string& remembered() const { return remembered_; }

 private:
  void check() const;

  std::string failure_;
  std::string remembered_;
  int64_t bytes_sent_ = 0;
  bool in_call_ = false;  // others may wait for what this rank has not sent
};

/// A name and a text, such as {"batch", "64"}.
using Fact = std::pair<std::string, std::string>;

/// Checks that all ranks have the same facts.
/// Throws: DistributedError, in all ranks, naming the first rank that differs from rank 0, and up
/// to three differences.
void check_agreement(Communicator& ranks, std::string_view where, const std::vector<Fact>& facts);

/// Hash of the file of the running program; "unknown" if it cannot be read.
std::string program_hash();

/// Checks that a launcher of MPI has not started more processes than training uses: `used`, the
/// size that MPI sees, or 1 without MPI. Else each process would train alone, and write the same
/// files. Reads the environment: OMPI_COMM_WORLD_SIZE and PMI_SIZE, or a rank above 0.
/// Throws: DistributedError, ending in `why`.
void check_launcher(int64_t used, std::string_view why);

}  // namespace quantrain
