#include "fuzz/harness.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include "framework/core/error.hpp"

// These functions exist only with AddressSanitizer.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                              void (*on_free)(const volatile void*))
    __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void* p) __attribute__((weak));
}

namespace quantrain::fuzz {
namespace {

// The report gives memory as a multiple of the input's size. An input with fewer bytes than this
// constant counts as one of this size, because the text of an error alone takes hundreds of bytes.
constexpr int64_t kLeastCompared = 4096;

std::atomic<int64_t> in_use = 0;
std::atomic<int64_t> peak = 0;

void on_malloc(const volatile void* /*p*/, size_t bytes) {
  const int64_t now = in_use += static_cast<int64_t>(bytes);
  int64_t known = peak;
  while (known < now && !peak.compare_exchange_weak(known, now)) {
  }
}

void on_free(const volatile void* p) {
  if (p != nullptr) in_use -= static_cast<int64_t>(__sanitizer_get_allocated_size(p));
}

/// Statistics of all inputs. The destructor prints them when the program ends.
struct Totals {
  int64_t inputs = 0;
  int64_t accepted = 0;
  int64_t most_bytes = 0;
  double most_of_input = 0.0;
  bool measures = false;

  Totals() {
    measures = &__sanitizer_install_malloc_and_free_hooks != nullptr &&
               __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) != 0;
  }
  ~Totals() {
    std::fprintf(stderr,
                 "quantrain: %lld inputs, %lld accepted",
                 static_cast<long long>(inputs),
                 static_cast<long long>(accepted));
    if (measures) {
      std::fprintf(
          stderr,
          "; most memory: %.1f MiB; most memory / max(size of the input, %lld bytes): %.0f",
          static_cast<double>(most_bytes) / 0x1p20,
          static_cast<long long>(kLeastCompared),
          most_of_input);
    }
    std::fprintf(stderr, "\n");
  }
};

/// The last 256 inputs that were accepted.
class AcceptedInputs {
 public:
  void add(std::span<const uint8_t> input) {
    if (inputs_.size() < kMost) inputs_.emplace_back();
    inputs_[next_++ % kMost].assign(input.begin(), input.end());
  }
  std::span<const uint8_t> at(size_t i) const {
    return inputs_.empty() ? std::span<const uint8_t>() : inputs_[i % inputs_.size()];
  }

 private:
  static constexpr size_t kMost = 256;
  std::vector<std::vector<uint8_t>> inputs_;
  size_t next_ = 0;
};

AcceptedInputs& accepted_inputs() {
  static AcceptedInputs inputs;
  return inputs;
}

Totals& totals() {
  static Totals totals;
  return totals;
}

}  // namespace

std::span<const uint8_t> accepted_input(size_t i) { return accepted_inputs().at(i); }

}  // namespace quantrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantrain::fuzz;
  Totals& seen = totals();
  const int64_t before = in_use;
  peak = before;
  bool accepted = false;
  try {
    accepted = accepts({data, size});
  } catch (const quantrain::Error&) {
  }
  const int64_t bytes = peak - before;
  ++seen.inputs;
  seen.accepted += accepted;
  if (accepted) accepted_inputs().add({data, size});
  seen.most_bytes = std::max(seen.most_bytes, bytes);
  const auto compared = std::max(static_cast<int64_t>(size), kLeastCompared);
  seen.most_of_input =
      std::max(seen.most_of_input, static_cast<double>(bytes) / static_cast<double>(compared));
  return 0;
}
