#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain {

/// An integer network that runs: what convert() makes and a device loads. Const, and cheap to copy:
/// run it from as many threads as you like. Inputs are samples one after the other, row-major;
/// images are [H, W, C].
class IntegerModel {
 public:
  /// Throws: as integer::validate().
  explicit IntegerModel(integer::Program program);
  // No moves: what was moved from is a model still.
  IntegerModel(const IntegerModel&) = default;
  IntegerModel& operator=(const IntegerModel&) = default;

  const integer::Program& program() const&;
  integer::Program program() const&&;
  /// Of an input, in the program's order.   Throws: ShapeError if there is no such input.
  const Shape& input_shape(size_t i = 0) const&;  ///< of one sample
  Shape input_shape(size_t i = 0) const&& { return input_shape(i); }
  const QParams& input_params(size_t i = 0) const&;
  QParams input_params(size_t i = 0) const&& { return input_params(i); }
  /// Empty: none.   docs/quantization.md (20)
  const integer::InputFeatures& input_features(size_t i = 0) const&;
  integer::InputFeatures input_features(size_t i = 0) const&& { return input_features(i); }
  size_t input_count() const { return program().inputs.size(); }
  size_t output_count() const { return program().outputs.size(); }
  /// Integers of one sample of an output: logits, for a classifier.
  /// Throws: ShapeError if there is no such output.
  int64_t outputs(size_t i = 0) const;
  /// A logit's real value = logit_scale() * integer.
  /// Throws: QuantError if the output's channels have scales of their own.
  double logit_scale(size_t i = 0) const;
  /// Bytes of what the network consists of, as it is stored.
  int64_t size_bytes() const { return integer::size_bytes(program()); }
  /// Bytes that a run of n samples takes from the pool, from codes to integers: integer::memory()
  /// of a chunk at most. Real values take their own beside them.
  int64_t memory(int64_t n) const;
  /// Of everything that the integers depend on; equal for a model and its file.
  uint64_t hash() const { return integer::content_hash(program()); }

  /// Integer logits [n, outputs()]: the output layer's accumulators, or its codes less their zero
  /// point. x: n samples of codes of the input, one byte each; a pixel's byte is its code where the
  /// input range is 0 to 1 and there are no features. Takes no memory but from the pool, which
  /// keeps it from call to call.
  /// Throws: ShapeError if x holds no whole number of samples, y not as many integers as they give,
  /// or the network has several inputs or outputs; DataError if a real value is NaN or infinite.
  void run(std::span<const uint8_t> x, std::span<int32_t> y) const;
  /// The same from raw values, as quantize_input() takes them, or to real logits.
  void run(std::span<const float> x, std::span<int32_t> y) const;
  void run(std::span<const uint8_t> x, std::span<float> y) const;
  void run(std::span<const float> x, std::span<float> y) const;
  /// For several inputs and outputs, in the program's order; all inputs hold equally many samples.
  void run(std::span<const std::span<const uint8_t>> x,
           std::span<const std::span<int32_t>> y) const;
  void run(std::span<const std::span<const float>> x, std::span<const std::span<float>> y) const;
  /// Index of the largest logit of each sample, the lowest among equals; classes holds one for each
  /// sample.   docs/quantization.md (12)
  /// Throws: as run().
  void classify(std::span<const uint8_t> x, std::span<int32_t> classes) const;
  void classify(std::span<const float> x, std::span<int32_t> classes) const;

  /// Raw values of whole samples to codes of an input: what the data set was made of, before any
  /// feature's offset and scale, which are applied here. Returns how many lie outside of the range
  /// that the codes represent, by more than the half step that rounds into it: they saturate.
  /// docs/quantization.md (3), (20)
  /// Throws: DataError if one is NaN or infinite; ShapeError if codes is not as long as x, or x
  /// holds no whole number of rows of features.
  int64_t quantize_input(std::span<const float> x, std::span<uint8_t> codes, size_t i = 0) const;

  /// Called with the position of a step and what it has just computed for n samples: codes, or
  /// int32 accumulators.
  using Visitor = std::function<void(size_t step, const void* output)>;
  /// run() of n samples that shows every intermediate result; n is at most kChunk. x has a pointer
  /// to the codes of each input.
  void trace(int64_t n, std::span<const uint8_t* const> x, const Visitor& visit) const;

  /// Samples that are run together; more are cut into chunks of this size.
  static constexpr int64_t kChunk = 256;

  /// What the file says of the model besides, by name: of load(), what save() was given.
  const std::map<std::string, std::string>& metadata() const& { return program().metadata; }
  std::map<std::string, std::string> metadata() const&& { return program().metadata; }

  /// integer::save_program and load_program. metadata is added to the model's own, and counts where
  /// both have a name. A model that would take more memory than the limit, by default
  /// integer::memory_limit() of its file, is refused before any is allocated.
  void save(const std::string& path, const std::map<std::string, std::string>& metadata = {}) const;
  static IntegerModel load(const std::string& path, std::optional<int64_t> memory_limit = {});
  /// From the bytes of a file.
  static IntegerModel load(std::span<const uint8_t> file, std::optional<int64_t> memory_limit = {});

 private:
  struct Ready;

  int64_t samples(std::span<const size_t> x, std::span<const size_t> y) const;
  void run_chunk(int64_t n,
                 std::span<const uint8_t* const> x,
                 std::span<int32_t* const> y,
                 uint8_t* memory,
                 const Visitor* visit) const;
  template <class Input, class Output>
  void run_all(std::span<const std::span<const Input>> x,
               std::span<const std::span<Output>> y) const;
  template <class Input>
  void classify_all(std::span<const Input> x, std::span<int32_t> classes) const;

  explicit IntegerModel(std::shared_ptr<const Ready> ready) : ready_(std::move(ready)) {}

  std::shared_ptr<const Ready> ready_;
};

/// A table of the layers: kernel, shape, bits, bytes and multiply-adds; program_table.hpp.
std::ostream& operator<<(std::ostream& stream, const IntegerModel& model);

}  // namespace quantrain
