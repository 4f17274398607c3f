#include "framework/distributed/mpi/mpi.hpp"

// The C++ interface, which MPI itself has removed, is not needed.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "framework/distributed/bytes.hpp"
#include "framework/distributed/mpi/lifeline.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "ranks";
// MPI counts in int, and in total over all ranks.
constexpr int64_t kMostAtOnce = std::numeric_limits<int>::max();
constexpr auto kGrace = std::chrono::seconds(5);  // for the program to notice a death
constexpr auto kForwarding =
    std::chrono::milliseconds(300);  // a launcher forwards what was printed

std::atomic<bool> exists = false;

std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<size_t>(length)};
}

void check_mpi(int code) {
  if (code != MPI_SUCCESS) throw DistributedError(kWhere, "MPI: ", error_text(code));
}

/// The start of what a rank gathers. Few bytes need no second message.
struct First {
  int64_t size = 0;
  std::array<uint8_t, 248> bytes{};
};

/// Where bytes [begin, begin + chunk) of each rank's are in one buffer.
struct Layout {
  std::vector<int> counts;
  std::vector<int> places;
  int total = 0;

  Layout(const std::vector<int64_t>& sizes, int64_t begin, int64_t chunk) {
    for (const int64_t size : sizes) {
      counts.push_back(static_cast<int>(std::clamp<int64_t>(size - begin, 0, chunk)));
      places.push_back(total);
      total += counts.back();
    }
  }
  void take(const Communicator::Bytes& buffer, std::vector<Communicator::Bytes>& all) const {
    for (size_t r = 0; r < all.size(); ++r)
      append_bytes(all[r], buffer.data() + places[r], static_cast<size_t>(counts[r]));
  }
};

}  // namespace

struct MpiRanks::State {
  /// What MPI reads and writes during a call. After a death, it may do so until the process ends.
  struct Buffers {
    First own;
    std::vector<First> firsts;
    Bytes out;
    Bytes in;
    std::optional<Layout> layout;
  };
  /// The same of an exchange.
  struct Flight {
    Bytes out;
    Bytes in;
    std::vector<MPI_Request> requests;
  };

  MPI_Comm comm = MPI_COMM_NULL;
  bool owns_mpi = false;
  int rank = 0;
  int size = 1;
  int exceptions = 0;      // in flight when the object was made
  bool abandoned = false;  // MPI cannot end
  Buffers buffers;
  std::list<std::shared_ptr<Flight>> flights;  // that have not ended
  std::vector<std::string> names;
  std::unique_ptr<Lifeline> lifeline;
  std::mutex mutex;                   // of the line
  std::string line;                   // remember()
  std::atomic<bool> noticed = false;  // the program knows that a rank died

  std::string with_line(const std::string& text) {
    const std::lock_guard lock(mutex);
    return text + (line.empty() ? "" : "; " + line);
  }

  /// In the lifeline's thread. Launchers end the other processes soon, so it says it at once.
  void on_death(int64_t dead) {
    const bool says = rank == (dead == 0 ? 1 : 0);
    if (says) {
      const std::string text =
          with_line("quantrain: " + names[static_cast<size_t>(dead)] + " died") + "\n";
      static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
    }
    const auto end = std::chrono::steady_clock::now() + kGrace;
    while (!noticed && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!noticed) std::_Exit(EXIT_FAILURE);
  }
};

bool MpiRanks::is_launched() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

MpiRanks::MpiRanks() : state_(std::make_unique<State>()) {
  if (exists.exchange(true)) throw DistributedError(kWhere, "there is an MpiRanks already");
  State& s = *state_;
  s.exceptions = std::uncaught_exceptions();
  int started = 0;
  MPI_Initialized(&started);
  if (started == 0) {
    int provided = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    s.owns_mpi = true;
    // MPICH does not know the communicator of a request that failed, and raises the error on the
    // world's: that must return, not end the process.
    for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF})
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  MPI_Comm_size(MPI_COMM_WORLD, &s.size);
  try {
    check_launcher(s.size, "MPI sees 1: mpirun is of another MPI than quantrain's");
  } catch (...) {
    if (s.owns_mpi) MPI_Finalize();
    exists = false;
    throw;
  }
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &s.comm));
  MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(s.comm, &s.rank);
  const std::string own = "rank " + std::to_string(s.rank) + " (process " +
                          std::to_string(::getpid()) + " on " + Lifeline::host_name() + ")";
  s.names.assign(static_cast<size_t>(s.size), "");
  try {
    std::vector<Bytes> names = gather_bytes(Bytes(own.begin(), own.end()));
    for (size_t r = 0; r < names.size(); ++r) s.names[r].assign(names[r].begin(), names[r].end());
    if (s.size > 1) connect();
  } catch (...) {
    static_cast<void>(state_.release());  // MPI may still write to its buffers
    throw;
  }
}

void MpiRanks::connect() {
  State& s = *state_;
  s.lifeline = std::make_unique<Lifeline>(
      s.rank, s.size, [state = state_.get()](int64_t dead) { state->on_death(dead); });
  Lifeline::Address address;
  Bytes sent;
  if (s.rank == 0) {
    address = s.lifeline->listen();
    append_value(sent, address.port);
    append_value(sent, address.token);
    append_text(sent, address.host);
    for (const std::string& number : address.addresses) append_text(sent, number);
  }
  const Bytes all = std::move(gather_bytes(std::move(sent))[0]);
  if (s.rank == 0) {
    s.lifeline->accept();
  } else {
    ByteReader from(all);
    address.port = from.value<uint16_t>();
    address.token = from.value<uint64_t>();
    address.host = from.text();
    while (!from.at_end()) address.addresses.push_back(from.text());
    s.lifeline->connect(address);
  }
  // A connection counts if both sides have it: rank 0 may have stopped waiting for a slow one.
  Bytes has;
  for (int r = 0; r < (s.rank == 0 ? s.size : 1); ++r) has.push_back(s.lifeline->has(r) ? 1 : 0);
  const std::vector<Bytes> have = gather_bytes(std::move(has));
  int lacking = 0;
  for (int r = 1; r < s.size; ++r) {
    const auto i = static_cast<size_t>(r);
    if (have[0].at(i) != 0 && have[i].at(0) != 0) continue;
    ++lacking;
    if (s.rank == 0) s.lifeline->forget(r);
    if (s.rank == r) s.lifeline->forget(0);
  }
  if (s.rank == 0 && lacking > 0)
    std::fprintf(stderr,
                 "quantrain: %d ranks could not connect to rank 0, so their death may go "
                 "unnoticed\n",
                 lacking);
  s.lifeline->watch();
}

MpiRanks::~MpiRanks() {
  State& s = *state_;
  if (std::uncaught_exceptions() > s.exceptions)
    fail("an exception ended the scope of its MpiRanks");
  // After the last call that all made, another rank's fail() may wait.
  if (!failed()) {
    try {
      barrier();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "quantrain: %s\n", error.what());
    }
  }
  s.noticed = true;
  if (s.abandoned || (s.lifeline && s.lifeline->dead() >= 0)) {
    std::fflush(nullptr);
    std::this_thread::sleep_for(kForwarding);
    MPI_Abort(s.comm, EXIT_FAILURE);
    std::_Exit(EXIT_FAILURE);
  }
  s.lifeline.reset();
  MPI_Comm_free(&s.comm);
  if (s.owns_mpi) MPI_Finalize();
  exists = false;
}

int64_t MpiRanks::rank() const { return state_->rank; }
int64_t MpiRanks::size() const { return state_->size; }
std::string MpiRanks::name(int64_t rank) const { return state_->names[static_cast<size_t>(rank)]; }

void MpiRanks::remember(const std::string& line) {
  Communicator::remember(line);
  const std::lock_guard lock(state_->mutex);
  state_->line = line;
}

namespace {

/// Whether all requests have ended. Nothing if one failed, or a rank died; code: MPI's.
std::optional<bool> ended(std::span<MPI_Request> requests, const Lifeline* lifeline, int& code) {
  // One by one: MPI_Testall() would return that one failed, not why.
  for (MPI_Request& request : requests) {
    int done = 0;
    code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return std::nullopt;
    if (done != 0) continue;
    code = MPI_ERR_OTHER;
    if (lifeline != nullptr && lifeline->dead() >= 0) return std::nullopt;
    return false;
  }
  return true;
}

}  // namespace

/// Waits for the request of a call that returned this code.
void MpiRanks::finish(int code, void* request) {
  if (code != MPI_SUCCESS) lose(code);
  for (const auto start = std::chrono::steady_clock::now();;) {
    const auto done =
        ended(std::span(static_cast<MPI_Request*>(request), 1), state_->lifeline.get(), code);
    if (!done) lose(code);
    if (*done) return;
    rest(start);
  }
}

void MpiRanks::lose(int code) {
  State& s = *state_;
  // If MPI notices a death first, the lifeline soon knows whose it is.
  for (int i = 0; s.lifeline && s.lifeline->dead() < 0 && i < 100; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const int64_t dead = s.lifeline ? s.lifeline->dead() : -1;
  s.noticed = true;
  if (dead < 0) abandon();  // the others wait for what this rank does not send
  give_up(dead >= 0 ? name(dead) + " died" : "MPI: " + error_text(code));
}

void MpiRanks::abandon() {
  State& s = *state_;
  s.abandoned = true;
  s.noticed = true;
  if (s.lifeline) s.lifeline->drop();
}

// What MPI cannot count in int goes in several rounds. All that MPI reads or writes lies in the
// buffers of the state, which outlive a call that a death ends.
std::vector<Communicator::Bytes> MpiRanks::gather_bytes(Bytes own) {
  State& s = *state_;
  State::Buffers& b = s.buffers;
  const auto ranks = static_cast<size_t>(s.size);
  constexpr auto kFirst = static_cast<int64_t>(sizeof(First::bytes));
  b.out = std::move(own);
  b.own.size = std::ssize(b.out);
  std::copy_n(b.out.begin(), std::min(kFirst, b.own.size), b.own.bytes.begin());
  b.firsts.assign(ranks, {});
  MPI_Request request = MPI_REQUEST_NULL;
  finish(MPI_Iallgather(&b.own,
                        sizeof(First),
                        MPI_BYTE,
                        b.firsts.data(),
                        sizeof(First),
                        MPI_BYTE,
                        s.comm,
                        &request),
         &request);
  std::vector<Bytes> all(ranks);
  std::vector<int64_t> left;  // after the first bytes
  for (size_t r = 0; r < ranks; ++r) {
    const First& first = b.firsts[r];
    append_bytes(all[r], first.bytes.data(), static_cast<size_t>(std::min(kFirst, first.size)));
    left.push_back(std::max<int64_t>(first.size - kFirst, 0));
  }
  const int64_t most = *std::max_element(left.begin(), left.end());
  const int64_t chunk = kMostAtOnce / s.size;
  for (int64_t begin = 0; begin < most; begin += chunk) {
    b.layout.emplace(left, begin, chunk);
    b.in.assign(static_cast<size_t>(b.layout->total), 0);
    finish(MPI_Iallgatherv(b.out.data() + std::min(kFirst + begin, b.own.size),
                           b.layout->counts[static_cast<size_t>(s.rank)],
                           MPI_BYTE,
                           b.in.data(),
                           b.layout->counts.data(),
                           b.layout->places.data(),
                           MPI_BYTE,
                           s.comm,
                           &request),
           &request);
    b.layout->take(b.in, all);
  }
  b = {};
  return all;
}

/// Messages from each rank to each other.
class MpiRanks::Messages : public Exchange {
 public:
  Messages(MpiRanks& ranks,
           int tag,
           Bytes bytes,
           const Slice& own,
           const std::vector<Slice>& slices,
           const std::vector<int64_t>& sizes)
      : ranks_(ranks), own_(own) {
    State& s = *ranks.state_;
    for (int64_t r = 0; r < s.size; ++r) {
      const int64_t size = r == s.rank ? 0 : sizes[static_cast<size_t>(r)];
      places_.push_back({places_.empty() ? 0 : places_.back().begin + places_.back().size, size});
    }
    flight_ = std::make_shared<State::Flight>();
    flight_->out = std::move(bytes);
    flight_->requests.reserve(2 * static_cast<size_t>(s.size));
    flight_->in.resize(static_cast<size_t>(places_.back().begin + places_.back().size));
    s.flights.push_back(flight_);
    at_ = std::prev(s.flights.end());
    for (int k = 1; k < s.size; ++k) {
      const int r = (s.rank + s.size - k) % s.size;
      const Slice& place = places_[static_cast<size_t>(r)];
      start(place, [&](int64_t begin, int n, MPI_Request* request) {
        return MPI_Irecv(flight_->in.data() + begin, n, MPI_BYTE, r, tag, s.comm, request);
      });
    }
    for (int k = 1; k < s.size; ++k) {  // not all to the same rank at once
      const int r = (s.rank + k) % s.size;
      start(slices[static_cast<size_t>(r)], [&](int64_t begin, int n, MPI_Request* request) {
        return MPI_Isend(flight_->out.data() + begin, n, MPI_BYTE, r, tag, s.comm, request);
      });
    }
  }

  bool test() override {
    if (done_) return true;
    State& s = *ranks_.state_;
    int code = MPI_SUCCESS;
    const auto done = ended(flight_->requests, s.lifeline.get(), code);
    if (!done) ranks_.lose(code);
    if (!*done) return false;
    s.flights.erase(at_);
    done_ = true;
    return true;
  }

  std::span<const uint8_t> from(int64_t rank) const override {
    const bool is_own = rank == ranks_.rank();
    const Slice& slice = is_own ? own_ : places_[static_cast<size_t>(rank)];
    return std::span(is_own ? flight_->out : flight_->in)
        .subspan(static_cast<size_t>(slice.begin), static_cast<size_t>(slice.size));
  }

 private:
  /// post(begin, bytes, request) for as many parts as MPI can count.
  template <class Post>
  void start(const Slice& slice, const Post& post) {
    for (int64_t at = 0; at < slice.size; at += kMostAtOnce) {
      MPI_Request& request = flight_->requests.emplace_back(MPI_REQUEST_NULL);
      const auto bytes = static_cast<int>(std::min(slice.size - at, kMostAtOnce));
      if (const int code = post(slice.begin + at, bytes, &request); code != MPI_SUCCESS)
        ranks_.lose(code);
    }
  }

  MpiRanks& ranks_;
  Slice own_;
  std::vector<Slice> places_;  // of what each rank sent
  std::shared_ptr<State::Flight> flight_;
  std::list<std::shared_ptr<State::Flight>>::iterator at_;
  bool done_ = false;
};

std::unique_ptr<Communicator::Exchange> MpiRanks::start_bytes(int tag,
                                                              Bytes bytes,
                                                              const std::vector<Slice>& slices,
                                                              const std::vector<int64_t>& sizes) {
  const Slice own = slices[static_cast<size_t>(state_->rank)];
  return std::make_unique<Messages>(*this, tag, std::move(bytes), own, slices, sizes);
}

}  // namespace quantrain
