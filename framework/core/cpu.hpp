#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// Instruction sets that kernels are built for, from the simplest to the widest. kReference stands
/// for the plain loops. Tests check all other kernels against these loops.
enum class Isa {
  kReference,
  kSse2,
  kAvx2,
  kAvxVnni,
  kAvx512Bw,
  kAvx512Vnni,
  kAmx,
  kNeon64,
  kNeon64Dot,
  kNeon64I8mm
};

inline constexpr Isa kAllIsas[] = {Isa::kReference,
                                   Isa::kSse2,
                                   Isa::kAvx2,
                                   Isa::kAvxVnni,
                                   Isa::kAvx512Bw,
                                   Isa::kAvx512Vnni,
                                   Isa::kAmx,
                                   Isa::kNeon64,
                                   Isa::kNeon64Dot,
                                   Isa::kNeon64I8mm};

/// "reference", "sse2", "avx2" (with FMA), "avxvnni" (AVX2 with dot products of bytes), "avx512bw",
/// "avx512vnni", "amx" (AVX-512 VNNI with tiles of bytes, for products of enough rows); on 64-bit
/// Arm "neon64", "neon64dot" (with dot products of signed bytes) and "neon64i8mm" (also with
/// products of matrices of unsigned by signed bytes).
std::string_view isa_name(Isa isa);
/// Throws: DataError if no instruction set has this name.
Isa isa_from_name(std::string_view name);

/// Whether this library contains kernels for the instruction set.
bool is_built(Isa isa);
/// Whether this library contains kernels for the instruction set, and this CPU with its operating
/// system can run them.
bool is_supported(Isa isa);
/// The instruction set whose kernels run: the widest supported one, unless the environment variable
/// QUANTRAIN_ISA or set_isa() chooses another.
/// Throws: DataError if QUANTRAIN_ISA names an instruction set that is unknown, not built or not
/// supported.
Isa chosen_isa();
/// Chooses the instruction set. Must not be called while kernels run.
/// Throws: as chosen_isa(); DataError also if the instruction set is not built or not supported.
void set_isa(Isa isa);
/// All instruction sets that are both built and supported.
std::vector<Isa> usable_isas();

}  // namespace quantrain
