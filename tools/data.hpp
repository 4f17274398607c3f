#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/batch_source.hpp"
#include "framework/data/loader.hpp"
#include "framework/metrics/metrics.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"

namespace CLI {
class App;
}

namespace quantrain::tools {

/// D on the command line, and what its values mean.
struct DataFlags {
  std::string path{};
  std::string split{};    ///< of an IDX folder: "train" or "test"
  std::string target{};   ///< columns of a .csv, a .npy file, or "input"
  std::string columns{};  ///< of a .csv: the inputs; empty: all but the targets
  std::string layout{};   ///< "nhwc" or "nchw"; empty: the one that fits the model
  std::string range{};    ///< real values of the lowest and highest value
  std::string mean{};
  std::string deviation{};
  int64_t samples = 0;  ///< use this many, spread over the data; 0: all

  /// required: whether --data must be given.
  void declare(CLI::App& line, bool required = true);
};

/// Samples as they are in the files, in our layout.
struct Data {
  std::string path{};
  std::string format{};          ///< "IDX", "npy", "csv", "PNG" or "bytes"
  std::vector<int64_t> shape{};  ///< of one sample
  int64_t size = 0;
  std::vector<uint8_t> bytes{};  ///< [size, shape]; empty if values are floats
  std::vector<float> floats{};
  bool is_int8 = false;           ///< the floats: codes, for a model of a file that takes int8
  std::vector<int32_t> labels{};  ///< [size], or empty
  std::vector<float> targets{};   ///< [size, target_shape], or empty
  std::vector<int64_t> target_shape{};
  bool target_is_input = false;  ///< in target_shape; then there are neither labels nor targets
  std::vector<std::string> classes{};  ///< names of the labels; empty if unknown
  std::vector<std::string> columns{};  ///< names of the columns; empty if unknown

  bool has_targets() const { return !labels.empty() || !targets.empty() || target_is_input; }
};

/// What the values of data mean for a model: x = low + (high - low) / 255 * byte, or the float;
/// the network sees z = (x - mean) / deviation. Codes are always made of z: a byte is its own code
/// only where both ranges are equal.
struct Reading {
  Range raw{0.0f, 1.0f};              ///< low and high: x of bytes 0 and 255
  Range input{0.0f, 1.0f};            ///< of the x that the model has codes for
  integer::InputFeatures features{};  ///< mean and deviation
  Range range{0.0f, 1.0f};            ///< of the z that the model has codes for
  std::optional<QParams> params{};    ///< of the codes, if the model takes codes
  /// If values of int8 are codes: the model's are larger by this.
  std::optional<int32_t> int8_offset{};
};

/// Reads D for a model with this input, and checks its shape. classes: the names of the labels, if
/// the model does not know them.
/// Throws: DataError with both shapes if they differ, if classes, labels or targets do not fit, and
/// what the readers throw; WrongCall if a flag does not fit this kind of data.
Data read_data(const DataFlags& flags,
               const Model& model,
               const std::vector<std::string>& classes = {});

/// From the flags, the model, and, for a network of floats without a range, the data. Bytes mean
/// what --range says; or the model's range, if it is [0, 1], [-1, 1] or [0, 255]; or [0, 1].
/// Throws: DataError with both if --mean, --deviation or, for floats, --range contradict the model,
/// or if values are int8 for a quantized .onnx file that does not take int8.
Reading reading_of(const DataFlags& flags, const Model& model, const Data& data);

/// The range of x that belongs to a range of z over all channels, and where it is within a code of
/// [0, 1], [-1, 1] or [0, 255], that; empty (min >= max) if there is none.
Range raw_range(Range z, const integer::InputFeatures& features);

/// In which form a model gets the samples.
enum class Form {
  kRaw,     ///< x: integer models encode it
  kFloats,  ///< z
  kCodes,   ///< z with its codes
};

/// The samples as a source of batches, with labels or targets. Indices: which ones; empty: all.
std::shared_ptr<const BatchSource> samples_of(std::shared_ptr<const Data> data,
                                              const Reading& reading,
                                              Form form,
                                              std::vector<int64_t> indices = {});

/// `count` indices, one of each of as many equal parts of n; all if count is 0 or more than n.
std::vector<int64_t> spread(int64_t n, int64_t count);

Form form_of(const Model& model);

/// Data, read and understood, for one model.
struct Samples {
  std::shared_ptr<const Data> data;
  Reading reading;

  Samples(const DataFlags& flags, const Model& model);
  Samples(std::shared_ptr<const Data> read, const DataFlags& flags, const Model& model);
  /// In the form that the model takes.
  DataLoader loader(const Model& model, int64_t count = 0, int64_t batch = 256) const;
  DataLoader loader(Form form, const std::vector<int64_t>& rows, LoaderOptions options) const;
};

/// --test and --test-target: other data, on which a network is judged.
struct TestFlags {
  std::string path{};
  std::string target{};

  void declare(CLI::App& line);
};

/// Data to learn from, and data to judge by.
struct Parts {
  Samples training;
  Samples test;
  std::vector<int64_t> training_rows;  ///< empty: all
  std::vector<int64_t> test_rows;      ///< empty: all
  std::string test_name;               ///< what the test samples are, for people
};
/// The parts of an IDX folder; --data and --test; or, without --test, the same samples twice, or,
/// with hold_out, nine and one of ten. Both get the first one's meaning.
Parts read_parts(const DataFlags& flags, const TestFlags& test, const Model& model, bool hold_out);

/// Writes into a network of floats what its data mean: range, normalization, columns, classes, and
/// whether its target is its input.
void describe(Model& model, const Samples& samples);
/// Whether the target of what is made of it is its input, if the samples tell.
void keep_target(Network& net, const Samples& samples);

/// Accuracy or errors of a model on data with labels or targets. A prepared network computes as
/// deployed.
Metrics evaluate_model(Model& model, const DataLoader& batches);

/// Warns if more than a hundredth of the values (of at most 4096 samples) has no code, because it
/// lies outside of the range that the model takes. model: its name in the warning.
void warn_of_saturation(const Samples& samples,
                        Report& report,
                        const std::string& model = "the model");
/// Of both parts, if they differ.
void warn_of_saturation(const Parts& parts, Report& report);

/// Adds what the input's codes mean as facts, and what bytes mean, if that differs.
void add_input(const Samples& samples, Report& report);

/// Adds metrics as facts: "accuracy_float".
void add_metrics(const Metrics& metrics, const std::string& of, Report& report);

}  // namespace quantrain::tools
