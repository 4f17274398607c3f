#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/integer/integer_model.hpp"
#include "framework/integer/program.hpp"

// An integer network as C99: one header and one source for any C99 or C++ compiler. The code
// allocates nothing, has no floating point and calls only memcpy and memset. Its outputs are the
// engine's integers, for every input. A program that defines NAME_FLOATS before it includes the
// header also gets functions that encode raw values and decode outputs, in float.
namespace quantrain {

struct C99Options {
  /// Prefix of every name that the linker sees, and name of the files, such as "digits".
  std::string name = "network";
  /// Weights of up to 4 bits are packed in the tables; if false, each weight takes a byte.
  bool pack_weights = true;
  /// Linker section of the tables, such as ".rodata.weights"; empty: the compiler's default.
  std::string section = {};
};

struct C99Sources {
  std::string name;
  std::string header;  ///< text of NAME.h
  std::string source;  ///< text of NAME.c
  std::string plan;    ///< a line for each step: memory, tables, multiply-adds
  int64_t scratch_bytes = 0;
  int64_t table_bytes = 0;
};

/// The C code of a network, without its dead channels (integer::remove_dead_channels). Outputs are
/// int32 accumulators if the network ends in them, else stored codes. NAME_class(row) returns the
/// class of a row of an output, its integers along the last axis (with several outputs:
/// NAME_class_0, NAME_class_1 and so on). NAME_classify runs a sample and returns its class, if the
/// network has one input, and one output, of one row.   docs/quantization.md (12)
/// Throws: ExportError saying what is wrong if the name or the section is invalid, or if a step or
/// the network has too many inputs and outputs for the 127 parameters of a C99 function; what
/// integer::validate() throws.
C99Sources export_c99(const integer::Program& program, const C99Options& options = {});

/// Bytes of scratch that the exported network needs. It also needs a few hundred bytes of stack,
/// and NAME_classify keeps the outputs on the stack, too. The scratch depends on shapes and numbers
/// of bits, so it can be computed before training. If channels die in training, the trained network
/// needs less.
/// Throws: what integer::validate() throws.
int64_t ram_bytes(const integer::Program& program, bool pack_weights = true);

/// A test program that includes NAME.c, runs these samples and compares the results with the
/// engine's: a checksum of every step, all outputs and, if the network has classes, the class. It
/// prints how many samples are equal, "N of N equal", and returns 0 if all are. Otherwise it also
/// prints the first difference and returns 1. `samples` holds codes, one sample after another; with
/// several inputs, all samples of the first input come first.
/// Throws: as export_c99(); ShapeError unless `samples` holds whole samples, at least one.
std::string c99_test(const integer::Program& program,
                     std::span<const uint8_t> samples,
                     const C99Options& options = {});

/// Writes NAME.h, NAME.c and, if `test` is not empty, NAME_test.c to a folder. Each file is written
/// whole or not at all.
/// Throws: DataError naming the path that cannot be written.
void write_c99(const std::string& folder, const C99Sources& sources, const std::string& test = {});

}  // namespace quantrain
