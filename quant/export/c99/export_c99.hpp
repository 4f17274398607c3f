#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/integer/integer_model.hpp"
#include "framework/integer/program.hpp"

// An integer network as C99: one header and one source for any C99 or C++ compiler. It allocates
// nothing, has no floating point and calls nothing but memcpy and memset. Its outputs are the
// engine's integers, for every input.
namespace quantrain {

struct C99Options {
  /// Prefix of every name that the linker sees, and name of the files: "digits".
  std::string name = "network";
  /// Weights of up to 4 bits lie packed in the tables; otherwise each takes a byte.
  bool pack_weights = true;
  /// Section of the tables, ".rodata.weights"; empty: the compiler's.
  std::string section = {};
};

struct C99Sources {
  std::string name;
  std::string header;  ///< of NAME.h
  std::string source;  ///< of NAME.c
  std::string plan;    ///< a line for each step: memory, tables, multiply-adds
  int64_t scratch_bytes = 0;
  int64_t table_bytes = 0;
};

/// The C of a network without its dead channels (integer::remove_dead_channels). Output: int32
/// accumulators where the network ends in them, else stored codes.
/// Throws: ExportError naming what is wrong with a name or a section; as integer::validate().
C99Sources export_c99(const integer::Program& program, const C99Options& options = {});

/// Bytes of scratch that the exported network takes. Beside them it needs a few hundred bytes of
/// stack, and NAME_classify the outputs' size more. They depend on shapes and bits, so they can be
/// asked of a network before it is trained; channels that die in training make them fewer.
/// Throws: as export_c99().
int64_t ram_bytes(const integer::Program& program, bool pack_weights = true);

/// A program that includes NAME.c, runs these samples and compares a checksum of every step, all
/// outputs and, where there are classes, the class with the engine's. It prints "N of N equal" and
/// returns 0, or the first step that differs and 1. Samples lie one after the other as codes; of
/// several inputs, all samples of the first input come first.
/// Throws: as export_c99(); ShapeError unless the samples are whole.
std::string c99_test(const integer::Program& program,
                     std::span<const uint8_t> samples,
                     const C99Options& options = {});

/// Writes NAME.h and NAME.c, and NAME_test.c where `test` is not empty, to a folder, each whole or
/// not at all.
/// Throws: DataError naming the path that cannot be written.
void write_c99(const std::string& folder, const C99Sources& sources, const std::string& test = {});

}  // namespace quantrain
