#include "framework/core/buffer.hpp"

#include <limits>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace quantrain {
namespace {

bool aligned(const void* block) {
  return reinterpret_cast<uintptr_t>(block) % pool::kAlignment == 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
constexpr bool kKeepsBlocks = false;  // so that the sanitizer sees a use after free
#else
constexpr bool kKeepsBlocks = true;
#endif

}  // namespace

TEST_CASE("blocks are aligned, and the slack after their end is accessible", "[core][buffer]") {
  for (const int64_t size : {0, 1, 15, 16, 17, 191, 192, 193, 255, 256, 257, 4095, 4096, 100000}) {
    Buffer<uint8_t> buffer(size);
    CHECK(aligned(buffer.data()));
    CHECK(buffer.size() == size);
    std::memset(buffer.data(),
                1,
                static_cast<size_t>(size) + pool::kSlack);  // the address sanitizer checks this
  }
}

TEST_CASE("a freed block serves the next request of its size", "[core][buffer]") {
  if (!kKeepsBlocks) return;
  const auto block = [] {
    const Buffer<float> buffer(1000);
    return static_cast<const void*>(buffer.data());
  };
  const void* const first = block();
  const pool::Counters before = pool::counters();
  for (int i = 0; i < 10; ++i) CHECK(block() == first);
  const pool::Counters after = pool::counters();
  CHECK(after.allocations == before.allocations + 10);
  CHECK(after.system_allocations == before.system_allocations);
}

TEST_CASE("the pool counts the bytes in use, and trim releases kept blocks", "[core][buffer]") {
  const pool::Counters before = pool::counters();
  {
    const Buffer<float> a(1 << 20);
    const Buffer<float> b(1 << 20);
    const int64_t used = pool::counters().bytes_in_use - before.bytes_in_use;
    CHECK(used >= 8 << 20);
    CHECK(used <= (8 << 20) * 5 / 4 + 1024);  // there are four size classes per power of two
    CHECK(pool::counters().peak_bytes_in_use >= pool::counters().bytes_in_use);
  }
  CHECK(pool::counters().bytes_in_use == before.bytes_in_use);
  CHECK(pool::counters().peak_bytes_in_use >= before.bytes_in_use + (8 << 20));
  pool::trim();
  const pool::Counters trimmed = pool::counters();
  const Buffer<float> c(1 << 20);
  CHECK(pool::counters().system_allocations == trimmed.system_allocations + 1);
}

TEST_CASE("large blocks begin at different cache lines of a page", "[core][buffer]") {
  if (!kKeepsBlocks) return;
  pool::trim();
  // The last three are mapped on their own.
  for (const int64_t size : {65536, 100000, 1000000, 2097088, 2097152, 5242881}) {
    std::set<uintptr_t> lines;
    std::vector<Buffer<uint8_t>> blocks;
    for (int i = 0; i < 64; ++i) {
      const Buffer<uint8_t>& block = blocks.emplace_back(size);
      CHECK(aligned(block.data()));
      lines.insert(reinterpret_cast<uintptr_t>(block.data()) % 4096);
    }
    INFO("size " << size);
    CHECK(lines.size() == 64);
    for (size_t i = 0; i < 64; ++i) {
      // Of mapped blocks only the ends, to save memory.
      const int64_t written = size <= 1000000 ? size : 64;
      std::memset(blocks[i].data(), static_cast<int>(i), static_cast<size_t>(written));
      std::memset(blocks[i].data() + size - 64, static_cast<int>(i), 64 + pool::kSlack);
    }
    for (size_t i = 0; i < 64; ++i) {  // blocks do not overlap
      CHECK(blocks[i][0] == i);
      CHECK(blocks[i].data()[static_cast<size_t>(size) + pool::kSlack - 1] == i);
    }
    blocks.clear();
    pool::trim();
  }
}

TEST_CASE("moving a buffer leaves the source empty", "[core][buffer]") {
  Buffer<int32_t> a(3);
  for (int32_t i = 0; i < 3; ++i) a[i] = i;
  const int32_t* const data = a.data();
  Buffer<int32_t> b = std::move(a);
  CHECK(b.data() == data);
  CHECK(b.size() == 3);
  CHECK(a.size() == 0);  // NOLINT: tests the moved-from object
  Buffer<int32_t> c;
  c = std::move(b);
  CHECK(std::vector<int32_t>(c.begin(), c.end()) == std::vector<int32_t>{0, 1, 2});
}

TEST_CASE("sizes beyond any memory are refused instead of wrapping around", "[core][buffer]") {
  CHECK_THROWS_AS(Buffer<float>(int64_t{1} << 62), std::bad_alloc);
  CHECK_THROWS_AS(Buffer<float>((int64_t{1} << 62) + 1), std::bad_alloc);
  CHECK_THROWS_AS(Buffer<uint8_t>(std::numeric_limits<int64_t>::max()), std::bad_alloc);
  CHECK_THROWS_AS(Buffer<float>(-1), std::bad_alloc);
  if (kKeepsBlocks) CHECK_THROWS_AS(Buffer<uint8_t>(int64_t{1} << 59), std::bad_alloc);
}

TEST_CASE("blocks that one thread allocates and another frees are reused", "[core][buffer]") {
  if (!kKeepsBlocks) return;
  constexpr size_t kBlocks = 50;
  std::vector<Buffer<float>> blocks;
  const auto produce = [&] {
    for (size_t i = 0; i < kBlocks; ++i) blocks.emplace_back(3000);
  };
  std::thread(produce).join();
  blocks.clear();
  const int64_t before = pool::counters().system_allocations;
  for (int round = 0; round < 10; ++round) {
    std::thread(produce).join();
    blocks.clear();
  }
  // A thread keeps a few blocks for itself.
  CHECK(pool::counters().system_allocations < before + 40);
}

TEST_CASE("trim releases what any thread has freed", "[core][buffer]") {
  if (!kKeepsBlocks) return;
  constexpr int64_t kSize = 7000;
  pool::trim();
  const auto use = [] { const Buffer<float> block(kSize); };
  std::thread(use).join();
  pool::trim();
  // Sixteen threads have all the places where a freed block may be kept for one thread. They take
  // each other's block, because they never use two at once.
  const int64_t before = pool::counters().system_allocations;
  for (int i = 0; i < 16; ++i) std::thread(use).join();
  CHECK(pool::counters().system_allocations == before + 1);
  pool::trim();
  use();
  CHECK(pool::counters().system_allocations == before + 2);
}

TEST_CASE("several threads may use the pool at once", "[core][buffer]") {
  const int64_t before = pool::counters().bytes_in_use;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 300; ++i) {
        Buffer<int> buffer(100 + i % 5);
        for (int& x : buffer) x = t;
        std::this_thread::yield();
        for (const int x : buffer) wrong[static_cast<size_t>(t)] += x != t;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
  CHECK(pool::counters().bytes_in_use == before);
}

}  // namespace quantrain
