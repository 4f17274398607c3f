#include "framework/core/cpu.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if QUANTRAIN_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

#if defined(__x86_64__)
constexpr bool kX86 = true;
constexpr bool kAvx512 = QUANTRAIN_AVX512;
constexpr bool kAmx = QUANTRAIN_AMX;
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
/// Compilers know this feature by name only since GCC 11 and Clang 17.
bool has_avxvnni() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return has_avx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & 1u << 4) != 0;
}
bool has_avx512bw() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}
bool has_avx512vnni() { return has_avx512bw() && __builtin_cpu_supports("avx512vnni"); }
#if QUANTRAIN_AMX
/// A process must ask Linux for the permission to use tiles. All of its threads then have it.
bool may_use_amx() {
  constexpr unsigned kTilesAndBytes = 3u << 24;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return has_avx512vnni() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & kTilesAndBytes) == kTilesAndBytes &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
bool has_amx() {
  static const bool may_use = may_use_amx();  // asks once
  return may_use;
}
#else
bool has_amx() { return false; }
#endif
#else
constexpr bool kX86 = false;
constexpr bool kAvx512 = false;
constexpr bool kAmx = false;
bool has_avx2() { return false; }
bool has_avxvnni() { return false; }
bool has_avx512bw() { return false; }
bool has_avx512vnni() { return false; }
bool has_amx() { return false; }
#endif
#if defined(__aarch64__)
constexpr bool kArm64 = true;
#else
constexpr bool kArm64 = false;
#endif
#if defined(__aarch64__) && defined(__linux__)
bool has_neon64dot() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
bool has_neon64i8mm() { return has_neon64dot() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }
#else
bool has_neon64dot() { return false; }
bool has_neon64i8mm() { return false; }
#endif
bool always() { return true; }

struct Row {
  Isa isa;
  std::string_view name;
  bool built;
  bool (*supported)();  // called only if built
};
constexpr Row kRows[] = {
    {Isa::kReference, "reference", true, always},
    {Isa::kSse2, "sse2", kX86, always},
    {Isa::kAvx2, "avx2", kX86, has_avx2},
    {Isa::kAvxVnni, "avxvnni", kX86, has_avxvnni},
    {Isa::kAvx512Bw, "avx512bw", kAvx512, has_avx512bw},
    {Isa::kAvx512Vnni, "avx512vnni", kAvx512, has_avx512vnni},
    {Isa::kAmx, "amx", kAmx, has_amx},
    {Isa::kNeon64, "neon64", kArm64, always},
    {Isa::kNeon64Dot, "neon64dot", kArm64, has_neon64dot},
    {Isa::kNeon64I8mm, "neon64i8mm", kArm64, has_neon64i8mm},
};
static_assert(std::equal(std::begin(kRows),
                         std::end(kRows),
                         std::begin(kAllIsas),
                         std::end(kAllIsas),
                         [](const Row& row, Isa isa) { return row.isa == isa; }));

const Row* find(Isa isa) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.isa == isa; });
  return row == std::end(kRows) ? nullptr : row;
}

Isa checked(Isa isa) {
  if (!is_built(isa)) throw DataError("isa", isa_name(isa), " is not built into this library");
  if (!is_supported(isa)) throw DataError("isa", isa_name(isa), " is not supported by this CPU");
  return isa;
}

Isa initial_isa() {
  if (const char* forced = std::getenv("QUANTRAIN_ISA"); forced != nullptr && *forced != '\0') {
    return checked(isa_from_name(forced));
  }
  return usable_isas().back();
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{initial_isa()};
  return isa;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  const Row* const row = find(isa);
  return row == nullptr ? "unknown" : row->name;
}

Isa isa_from_name(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.isa;
  }
  std::string known;
  for (const Row& row : kRows) known.append(known.empty() ? "" : ", ").append(row.name);
  throw DataError("isa", "unknown instruction set \"", name, "\": there are ", known);
}

bool is_built(Isa isa) {
  const Row* const row = find(isa);
  return row != nullptr && row->built;
}

bool is_supported(Isa isa) {
  const Row* const row = find(isa);
  return row != nullptr && row->built && row->supported();
}

Isa chosen_isa() { return current().load(std::memory_order_relaxed); }

void set_isa(Isa isa) { current().store(checked(isa), std::memory_order_relaxed); }

std::vector<Isa> usable_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : kAllIsas) {
    if (is_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

}  // namespace quantrain
