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

/// A runnable integer network. convert() makes it, and a device loads it from a file. Immutable and
/// cheap to copy. Any number of threads may run it at the same time. Inputs are consecutive
/// samples, row-major; images are [H, W, C].
class IntegerModel {
 public:
  /// keep: how the model keeps its weights. The integers are the same. With kSmall, a model takes
  /// little more memory than its file, also with fewer than 8 bits, but may run slower
  /// (docs/kernels.md). The same model, small: IntegerModel(model.program(), KeepWeights::kSmall).
  /// A model that is made from a program is fast unless keep says otherwise, also if the program is
  /// that of a small model.
  /// Throws: like integer::validate(); DataError if keep is neither.
  explicit IntegerModel(integer::Program program, KeepWeights keep = KeepWeights::kFast);
  // Copies only: a moved-from model would be empty.
  IntegerModel(const IntegerModel&) = default;
  IntegerModel& operator=(const IntegerModel&) = default;

  const integer::Program& program() const&;
  integer::Program program() const&&;
  /// Properties of input i; inputs have the program's order.
  /// Throws: ShapeError if input i does not exist.
  const Shape& input_shape(size_t i = 0) const&;  ///< of one sample
  Shape input_shape(size_t i = 0) const&& { return input_shape(i); }
  const QParams& input_params(size_t i = 0) const&;
  QParams input_params(size_t i = 0) const&& { return input_params(i); }
  /// Empty if the input has no features.   docs/quantization.md (20)
  const integer::InputFeatures& input_features(size_t i = 0) const&;
  integer::InputFeatures input_features(size_t i = 0) const&& { return input_features(i); }
  size_t input_count() const { return program().inputs.size(); }
  size_t output_count() const { return program().outputs.size(); }
  /// Number of integers of output i for one sample, for example a classifier's logits.
  /// Throws: ShapeError if output i does not exist.
  int64_t output_size(size_t i = 0) const;
  /// The real value of an output's integer is logit_scale() * integer, if all its integers share a
  /// scale. Integers with different scales cannot be compared: use classify(), or run() on floats.
  /// Throws: QuantError if the output has a scale for each channel, as an output layer has unless
  /// its weights are quantized per tensor; ShapeError if output i does not exist.
  double logit_scale(size_t i = 0) const;
  /// Size of the stored network in bytes (integer::size_bytes).
  int64_t size_bytes() const { return integer::size_bytes(program()); }
  /// Bytes that run() takes from the pool for n samples, if inputs are codes and outputs are
  /// integers: integer::memory() of n samples, or of its largest chunk. Real logits need more.
  int64_t memory(int64_t n) const;
  /// Bytes that the model keeps besides, between runs: integer::kept_bytes().
  int64_t kept_bytes() const;
  /// How it keeps its weights.
  KeepWeights keeps() const;
  /// Hash of everything that the integers depend on. A model that is saved and loaded keeps its
  /// hash.
  uint64_t hash() const { return integer::content_hash(program()); }

  /// Computes the integer logits [n, output_size()] from raw values of n samples, in the units of
  /// the data source (see quantize_input()): the output layer's accumulators, or its codes minus
  /// their zero point. The channels of accumulators may have different scales: compare them by
  /// classify(). Or computes real logits, in which case y holds floats. Returns the number of
  /// values that saturate. All memory comes from the pool, which keeps it for the next call.
  /// outside: by default, values of which more than half saturate are refused; in a call of 8
  /// samples and more, so is a column (index along the last axis) of which more than nine tenths
  /// saturate.
  /// Throws: ShapeError if x does not hold whole samples, y does not have output_size() integers for
  /// each of them, or the network has several inputs or outputs; DataError like quantize_input(),
  /// or if `outside` refuses the values of an input; kRefuseMost counts all values of the call.
  /// Values are converted by chunks of kChunk samples. On a DataError, y holds the results of the
  /// chunks before the one in which the error was found.
  int64_t run(std::span<const float> x,
              std::span<int32_t> y,
              Outside outside = Outside::kRefuseMost) const;
  int64_t run(std::span<const float> x,
              std::span<float> y,
              Outside outside = Outside::kRefuseMost) const;
  /// For several inputs and outputs, in the order in which forward() took and returned them. All
  /// inputs hold the same number of samples.
  ///   const std::vector<std::span<const float>> inputs{vibration, settings};
  ///   const std::vector<std::span<float>> outputs{wear, temperature};
  ///   model.run(inputs, outputs);
  int64_t run(std::span<const std::span<const float>> x,
              std::span<const std::span<float>> y,
              Outside outside = Outside::kRefuseMost) const;
  /// Writes the class of each sample: the index of its largest logit; among equal logits, the
  /// lowest index. An output [..., C] of images or signals has a class for each position:
  /// classes [n, ...], the index along the last axis. Compares integers, also if each channel has
  /// its own scale. Returns the number of values that saturate.   docs/quantization.md (12)
  /// Throws: like run(); ShapeError unless classes has one entry for each position of each sample.
  int64_t classify(std::span<const float> x,
                   std::span<int32_t> classes,
                   Outside outside = Outside::kRefuseMost) const;

  /// The same on codes of the input's parameters, one byte for each element, such as
  /// Batch::bytes(), or what quantize_input() and quantize_pixels() compute.
  /// Throws: ShapeError like run() and classify(); DataError if the input has 1 bit and x holds
  /// other codes than 0 and 1, such as bytes of an image.
  void run_codes(std::span<const uint8_t> x, std::span<int32_t> y) const;
  void run_codes(std::span<const uint8_t> x, std::span<float> y) const;
  void run_codes(std::span<const std::span<const uint8_t>> x,
                 std::span<const std::span<int32_t>> y) const;
  void classify_codes(std::span<const uint8_t> x, std::span<int32_t> classes) const;

  /// The same on pixels as a camera delivers them, one byte for each element: the raw value of a
  /// pixel is byte / 255. If the input's range is [0, 1], without features, pixels are its codes
  /// and run without a copy.
  /// Throws: like run() and classify(). A batch is converted as a whole before it runs.
  int64_t run_pixels(std::span<const uint8_t> x,
                     std::span<int32_t> y,
                     Outside outside = Outside::kRefuseMost) const;
  int64_t run_pixels(std::span<const uint8_t> x,
                     std::span<float> y,
                     Outside outside = Outside::kRefuseMost) const;
  int64_t classify_pixels(std::span<const uint8_t> x,
                          std::span<int32_t> classes,
                          Outside outside = Outside::kRefuseMost) const;

  // A byte may be a code or a pixel: the name of the call says which.
  template <class Y>
  void run(std::span<const uint8_t> x, Y&& y) const = delete;  // run_codes() or run_pixels()
  template <class Y>
  void classify(std::span<const uint8_t> x, Y&& classes) const = delete;  // classify_codes() or
                                                                          // classify_pixels()

  /// Converts raw values of whole samples to codes for input i. Raw values are in the units of the
  /// data source: this function applies the offsets and scales of features. Returns the number of
  /// values that saturate: those more than half a step outside of the range of the codes.
  /// docs/quantization.md (3), (20)
  /// Throws: DataError if a value, before or after offset and scale, is NaN or infinite; ShapeError
  /// if codes is not as long as x, x does not hold whole rows of features, or input i does not
  /// exist.
  int64_t quantize_input(std::span<const float> x, std::span<uint8_t> codes, size_t i = 0) const;
  /// The same for pixels: the raw values are byte / 255.
  int64_t quantize_pixels(std::span<const uint8_t> x, std::span<uint8_t> codes, size_t i = 0) const;

  /// Called after each step with the step's position in the program and its output for n samples:
  /// codes or int32 accumulators.
  using Visitor = std::function<void(size_t step, const void* output)>;
  /// Runs n samples, at most kChunk, and calls visit with every intermediate result. x has a
  /// pointer to the codes of each input.
  /// Throws: ShapeError if n is not in [0, kChunk] or the number of inputs is wrong; DataError if
  /// visit is null, or for codes that run_codes() refuses.
  void trace(int64_t n, std::span<const uint8_t* const> x, const Visitor& visit) const;

  /// Number of samples that run together. Larger batches are split into chunks of this size.
  static constexpr int64_t kChunk = 256;

  /// Named texts that the file stores besides the network, such as those given to save().
  const std::map<std::string, std::string>& metadata() const& { return program().metadata; }
  std::map<std::string, std::string> metadata() const&& { return program().metadata; }

  /// See integer::save_program and load_program. save() adds `metadata` to the model's own metadata
  /// and overrides entries of the same name. load() refuses a model that needs more memory than the
  /// limit, before it allocates that memory. The default limit is that of load_program(). keep: as
  /// in the constructor.
  void save(const std::string& path, const std::map<std::string, std::string>& metadata = {}) const;
  static IntegerModel load(const std::string& path,
                           std::optional<int64_t> memory_limit = {},
                           KeepWeights keep = KeepWeights::kFast);
  /// Like load(), but from the bytes of a file.
  static IntegerModel load(std::span<const uint8_t> file,
                           std::optional<int64_t> memory_limit = {},
                           KeepWeights keep = KeepWeights::kFast);

 private:
  struct Ready;

  int64_t samples(std::span<const size_t> x, std::span<const size_t> y) const;
  void run_chunk(int64_t n,
                 std::span<const uint8_t* const> x,
                 std::span<int32_t* const> y,
                 uint8_t* memory,
                 const Visitor* visit) const;
  struct Saturation;
  template <class Input, class Output>
  void run_all(std::span<const std::span<const Input>> x,
               std::span<const std::span<Output>> y,
               Saturation* saturation = nullptr) const;
  /// Number of samples in x elements. Throws like classify().
  int64_t samples_to_classify(size_t x, size_t classes) const;
  template <class Input>
  void classify_all(std::span<const Input> x,
                    std::span<int32_t> classes,
                    Saturation* saturation = nullptr) const;
  template <class Run>
  int64_t with_pixels(std::span<const uint8_t> x, Outside outside, const Run& run) const;

  explicit IntegerModel(std::shared_ptr<const Ready> ready) : ready_(std::move(ready)) {}

  std::shared_ptr<const Ready> ready_;
};

/// Prints a table of the layers with kernel, shape, bits, bytes and multiply-adds
/// (program_table.hpp).
std::ostream& operator<<(std::ostream& stream, const IntegerModel& model);

}  // namespace quantrain
