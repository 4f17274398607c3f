#include "framework/core/cpu.hpp"

#include <atomic>
#include <cstdlib>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

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
  switch (isa) {
    case Isa::kReference: return "reference";
    case Isa::kSse2: return "sse2";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512Bw: return "avx512bw";
    case Isa::kAvx512Vnni: return "avx512vnni";
    case Isa::kNeon64: return "neon64";
  }
  return "unknown";
}

Isa isa_from_name(std::string_view name) {
  for (const Isa isa : kAllIsas) {
    if (isa_name(isa) == name) return isa;
  }
  throw DataError("isa", "unknown instruction set \"", name, "\"");
}

bool is_built(Isa isa) {
#if defined(__x86_64__)
  return isa != Isa::kNeon64;
#elif defined(__aarch64__)
  return isa == Isa::kReference || isa == Isa::kNeon64;
#else
  return isa == Isa::kReference;
#endif
}

bool is_supported(Isa isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::kReference:
    case Isa::kSse2: return true;
    case Isa::kAvx2: return avx2;
    case Isa::kAvx512Bw: return avx512;
    case Isa::kAvx512Vnni: return avx512 && __builtin_cpu_supports("avx512vnni");
    case Isa::kNeon64: break;
  }
  return false;
#else
  return is_built(isa);
#endif
}

Isa chosen_isa() { return current().load(std::memory_order_relaxed); }

void set_isa(Isa isa) { current().store(checked(isa), std::memory_order_relaxed); }

std::vector<Isa> usable_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : kAllIsas) {
    if (is_built(isa) && is_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

}  // namespace quantrain
