#include "framework/distributed/communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "framework/core/file.hpp"
#include "framework/core/hash.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/distributed/bytes.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "ranks";
enum Status : uint8_t { kRuns, kFails };

Communicator::Bytes with_status(Status status, std::span<const uint8_t> bytes) {
  Communicator::Bytes all(1 + bytes.size());
  all[0] = status;
  std::copy(bytes.begin(), bytes.end(), all.begin() + 1);
  return all;
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string text_of(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<Fact> facts_from(std::span<const uint8_t> bytes) {
  std::vector<Fact> facts;
  for (ByteReader reader(bytes); !reader.at_end();) {
    std::string name = reader.text();
    facts.emplace_back(std::move(name), reader.text());
  }
  return facts;
}

/// Up to three facts that differ, or "" if none does.
std::string difference_of(const std::vector<Fact>& first, const std::vector<Fact>& other) {
  constexpr int kShown = 3;
  TextStream text;
  int found = 0;
  const auto value_of = [](const std::vector<Fact>& facts, const std::string& name) {
    const auto at = std::find_if(
        facts.begin(), facts.end(), [&](const Fact& fact) { return fact.first == name; });
    return at == facts.end() ? std::string("none") : at->second;
  };
  const auto compare = [&](const std::string& name) {
    const std::string a = value_of(first, name);
    const std::string b = value_of(other, name);
    if (a == b || ++found > kShown) return;
    text << (found > 1 ? "; " : "") << name << " is " << b << ", in rank 0 " << a;
  };
  for (const Fact& fact : first) compare(fact.first);
  for (const Fact& fact : other) {
    if (value_of(first, fact.first) == "none") compare(fact.first);
  }
  if (found > kShown) text << "; " << found - kShown << " more";
  return text.str();
}

}  // namespace

void Communicator::check() const {
  if (failed()) throw DistributedError(kWhere, failure_);
}

void Communicator::give_up(const std::string& text) {
  failure_ = text + (remembered_.empty() ? "" : "; " + remembered_);
  throw DistributedError(kWhere, failure_);
}

std::vector<Communicator::Bytes> Communicator::all_gather(std::span<const uint8_t> own) {
  check();
  Bytes sent = with_status(kRuns, own);
  bytes_sent_ += std::ssize(sent) * (size() - 1);
  in_call_ = true;
  std::vector<Bytes> all = gather_bytes(std::move(sent));
  in_call_ = false;
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].at(0) == kFails)
      give_up(name(static_cast<int64_t>(r)) + " failed: " + text_of(std::span(all[r]).subspan(1)));
  }
  for (Bytes& bytes : all) bytes.erase(bytes.begin());
  return all;
}

std::unique_ptr<Communicator::Exchange> Communicator::start_exchange(
    int tag, Bytes bytes, const std::vector<Slice>& slices, const std::vector<int64_t>& sizes) {
  check();
  for (int64_t r = 0; r < size(); ++r) {
    if (r != rank()) bytes_sent_ += slices[static_cast<size_t>(r)].size;
  }
  return start_bytes(tag, std::move(bytes), slices, sizes);
}

void Communicator::rest(std::chrono::steady_clock::time_point start) {
  const auto waited = std::chrono::steady_clock::now() - start;
  if (waited < std::chrono::microseconds(200)) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(
        std::chrono::microseconds(waited < std::chrono::milliseconds(20) ? 20 : 200));
  }
}

Communicator::Bytes Communicator::broadcast(std::span<const uint8_t> own) {
  return std::move(all_gather(is_first() ? own : std::span<const uint8_t>())[0]);
}

std::string Communicator::broadcast(const std::string& own) {
  return text_of(broadcast(bytes_of(own)));
}

void Communicator::fail(const std::string& text) noexcept {
  if (failed()) return;
  try {
    failure_ = "this rank failed before: " + text;
    if (in_call_) {
      abandon();
    } else {
      gather_bytes(with_status(kFails, bytes_of(text)));
    }
  } catch (const std::exception&) {  // another one failed, too
  }
}

void check_agreement(Communicator& ranks, std::string_view where, const std::vector<Fact>& facts) {
  Communicator::Bytes own;
  for (const auto& [name, value] : facts) {
    append_text(own, name);
    append_text(own, value);
  }
  const std::vector<Communicator::Bytes> all = ranks.all_gather(own);
  const std::vector<Fact> first = facts_from(all[0]);
  for (size_t r = 1; r < all.size(); ++r) {
    const std::string differs = difference_of(first, facts_from(all[r]));
    if (differs.empty()) continue;
    throw DistributedError(where,
                           ranks.name(static_cast<int64_t>(r)),
                           " does not fit: ",
                           differs,
                           ": start all ranks with the same program, data, options and seed");
  }
}

void check_launcher(int64_t used, std::string_view why) {
  if (used > 1) return;
  const auto number = [](const char* name) {
    const char* const text = std::getenv(name);
    return text == nullptr ? 0 : std::atoll(text);
  };
  const int64_t started = std::max(number("OMPI_COMM_WORLD_SIZE"), number("PMI_SIZE"));
  const int64_t rank = std::max(number("PMIX_RANK"), number("PMI_RANK"));
  if (started > 1)
    throw DistributedError(kWhere, "the launcher started ", started, " processes, ", why);
  if (rank > 0)
    throw DistributedError(kWhere, "the launcher made this process rank ", rank, ", ", why);
}

std::string program_hash() {
  constexpr size_t kBlock = size_t{1} << 20;
  try {
    InputFile file("/proc/self/exe");
    Fnv1a hash;
    std::vector<uint8_t> block(kBlock);
    while (const size_t read = file.read(block)) hash.add(std::span(block).first(read));
    return std::to_string(hash.value());
  } catch (const DataError&) {
    return "unknown";
  }
}

}  // namespace quantrain
