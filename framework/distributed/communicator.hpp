#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
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

  /// Bytes that all ranks send each other while they compute on.
  class Exchange {
   public:
    virtual ~Exchange() = default;
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    /// Lets the exchange go on. Returns whether it has ended.
    /// Throws: DistributedError if a rank died.
    virtual bool test() = 0;
    /// What the rank sent to this one, once test() was true.
    virtual std::span<const uint8_t> from(int64_t rank) const = 0;

   protected:
    Exchange() = default;
  };
  /// Bytes [begin, begin + size) of a buffer.
  struct Slice {
    int64_t begin = 0;
    int64_t size = 0;
  };
  /// Starts to send slices[r] of `bytes` to rank r, and to receive sizes[r] bytes from it.
  /// Exchanges with different tags, from 0 to 32767, may start in any order; those with the same
  /// tag start in the same order in all ranks. Call it only after expect_exchanges(), because
  /// exchanges do not wait for fail().
  std::unique_ptr<Exchange> start_exchange(int tag,
                                           Bytes bytes,
                                           const std::vector<Slice>& slices,
                                           const std::vector<int64_t>& sizes);
  /// Says, right after an all_gather() that all ranks have passed, that exchanges are their next
  /// calls. From here to end_exchanges(), fail() means the death of this rank, as within any other
  /// call.
  void expect_exchanges() { in_call_ = true; }
  /// Says that all exchanges have ended, here and, as far as this rank is concerned, in the others.
  void end_exchanges() { in_call_ = false; }
  /// Waits a little, if a call has waited since `start`. Processes that share a core leave it to
  /// the others.
  static void rest(std::chrono::steady_clock::time_point start);

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
  /// As all_gather() and start_exchange(), without fail().
  virtual std::vector<Bytes> gather_bytes(Bytes own) = 0;
  virtual std::unique_ptr<Exchange> start_bytes(int tag,
                                                Bytes bytes,
                                                const std::vector<Slice>& slices,
                                                const std::vector<int64_t>& sizes) = 0;
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
