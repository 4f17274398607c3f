#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/integer/integer_model.hpp"
#include "layers/network/network.hpp"
#include "quant/prepare/qconfig.hpp"
#include "quant/prepare/scopes.hpp"
#include "tools/output.hpp"

namespace CLI {
class App;
}

namespace quantrain::tools {

/// What only .onnx files need.
struct OnnxFlags {
  std::vector<std::string> shapes{};  ///< "input=1,3,224,224"
  std::string outputs{};              ///< names, separated by commas
  std::string range{};                ///< of codes whose range a quantized file does not say
  bool anew = false;                  ///< choose anew the quantization that cannot be kept

  void declare(CLI::App& line);
  bool given() const { return !shapes.empty() || !outputs.empty() || !range.empty() || anew; }
};

/// MODEL on the command line.
struct ModelFlags {
  std::string path{};
  OnnxFlags onnx{};

  /// With the flags for .onnx files.
  void declare(CLI::App& line);
  /// Without them.
  void declare_path(CLI::App& line, const char* name);
};

/// What the metadata of an autoencoder say, as describe() writes them.
inline constexpr const char* kTarget = "target";
inline constexpr const char* kInputTarget = "input";

/// What the codes of an input mean: real values z, or, with features, (x - offset) / scale.
struct Meaning {
  QParams params;
  integer::InputFeatures features{};
};

/// A model from any file that the program reads.
struct Model {
  enum class Kind {
    kFloat,     ///< a network of floats
    kPrepared,  ///< a network prepared for quantization
    kInteger,   ///< an integer program
  };

  std::string path;
  std::string format{};  ///< "ONNX", "TFLite", "network" or "integer model"
  Kind kind = Kind::kFloat;
  bool needs_data = false;  ///< of kPrepared: some ranges are still to be chosen, by --onnx-anew
  /// Of an .onnx file that quantizes its input to int8, and of what is made from it: our codes are
  /// larger than the file's by this.
  std::optional<int32_t> int8_offset{};
  bool gives_input = false;               ///< an autoencoder: it was made with --target input
  std::unique_ptr<Network> network{};     ///< of kFloat and kPrepared
  std::optional<IntegerModel> integer{};  ///< of kInteger

  size_t inputs() const;
  /// Of one sample; empty if the model does not say.
  std::vector<int64_t> input_shape(size_t i = 0) const;
  std::string input_name(size_t i = 0) const;
  /// Extent of the last axis of the first output: the number of classes, if it classifies.
  int64_t outputs() const;
  /// Empty if a network of floats does not say its range.
  std::optional<Meaning> meaning(size_t i = 0) const;
  std::vector<std::string> classes() const;
  /// Names of the first input's columns; empty if unknown.
  std::vector<std::string> columns() const;
  /// "a network of floats (ONNX)", for messages.
  std::string description() const;
};

/// Opens a model. What it is stands in its first bytes, not in its name.
/// Throws: DataError naming the path if it is no model that the program reads; what the readers
/// throw.
Model open_model(const ModelFlags& flags);
/// Opens two. The flags for .onnx files say something about each one that quantrain did not write;
/// if neither is one, opening A says so.
std::pair<Model, Model> open_models(const std::string& a,
                                    const std::string& b,
                                    const OnnxFlags& flags);

/// The integers of a model: its own, or those that its prepared network converts to.
/// Throws: DataError if it is a network of floats; what convert() throws.
IntegerModel integers_of(Model& model);

/// Random codes of n samples for each input, as it takes them: of 1 bit, 0 and 1.
std::vector<std::vector<uint8_t>> random_codes(const IntegerModel& model, int64_t n);

/// Example inputs of n samples, as a network takes them: codes of its declared ranges, or of [0,
/// 1].
enum class Examples { kZero, kRandom };
std::vector<Tensor> examples_of(const Model& model,
                                Examples values = Examples::kZero,
                                int64_t n = 1);

/// While it lives, a prepared network computes as its kind says: as deployed, or in floats as long
/// as it needs data.
class ComputeAsKind {
 public:
  explicit ComputeAsKind(Model& model);

 private:
  std::optional<quant::DeployedMode> deployed_;
  std::optional<quant::FloatMode> floats_;
};

/// Prepares a network of this model for quantization: prepare_qat() if it will train, else
/// prepare_ptq().
/// Throws: what these throw; of an .onnx file, the message also says how to leave out its last part.
void prepare(Network& net, const Model& model, const quant::QConfig& config, bool will_train);

/// An independent copy of a network of floats, prepared by this configuration, or of a prepared
/// one; calibrated with random values, if it has no ranges yet: what of a deployed network depends
/// on shapes and bits only. Without first_bits, which fall while training.
/// Throws: what prepare_ptq() throws.
Network prepared_copy(const Model& model, const quant::QConfig& config);

/// Adds what a loaded model keeps in memory, by how it keeps its weights.
void add_kept(const IntegerModel& model, Report& report);

/// What the network takes on a device, as C99.
struct DeviceSize {
  int64_t ram = 0;
  int64_t flash = 0;
};
DeviceSize device_size(const IntegerModel& model);
/// As facts.
void add_size(const DeviceSize& size, Report& report);

}  // namespace quantrain::tools
