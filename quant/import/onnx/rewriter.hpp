#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "layers/onnx/constant.hpp"
#include "layers/onnx/refused_nodes.hpp"
#include "layers/onnx/schema.hpp"
#include "quant/import/onnx/float_graph.hpp"

namespace quantrain::onnx {

/// A constant of integers, such as the codes of weights.
struct ConstantCodes {
  std::vector<int64_t> dims{};
  std::vector<int64_t> values{};
  int64_t least = 0;  ///< the codes that they may be
  int64_t most = 0;

  int bits() const;
};

/// Walks a graph and writes one of floats. The handlers of the dialects use it. A value of codes
/// keeps its name; in the new graph it is the real value of these codes.
class Rewriter {
 public:
  explicit Rewriter(const Model& model);
  FloatGraph run();

  // What handlers use. All throw Refusal.

  /// The name in the new graph of a value that is read.
  const std::string& real(const std::string& name) const;
  bool is_constant(const std::string& name) const;
  std::vector<float> floats(const std::string& name);
  /// A constant of one number.
  float number(const std::string& name);
  const StoredTensor& constant(const std::string& name) const;
  ConstantCodes codes(const std::string& name);
  bool has_codes(const std::string& name) const { return constant_codes_.contains(name); }

  /// The parameters that a node's inputs give. zero: a name, or empty. type: that of the codes if
  /// there is no zero point.
  QParams params(const std::string& scale,
                 const std::string& zero,
                 ElementType type = ElementType::kUint8);
  /// Parameters of a computed value: one scale, and codes of 1 to 8 bits.
  QParams value_params(const std::string& scale,
                       const std::string& zero,
                       ElementType type = ElementType::kUint8);

  /// Adds a quantizer: output is the real value of the codes of the value `source`. Before codes
  /// that have no negative value, a sum gets the ReLU that the file leaves out.
  void add_quantizer(const std::string& source, const std::string& output, const QParams& params);
  /// The same where the file has codes as `output`.
  void quantize(const std::string& source, const std::string& output, const QParams& params);
  /// Says that a computed value has the codes of another, moved or selected.
  void same_codes(const std::string& output, const QParams& params, const std::string& source);
  /// The parameters of a value of codes; null if it is none.
  const QParams* params_of(const std::string& name) const;
  /// Whether an input of the network has codes.
  bool is_code_input(const std::string& name) const { return code_inputs_.contains(name); }
  /// The type of such an input's codes; of another value, uint8.
  ElementType type_of_input(const std::string& name) const;
  /// The value before the quantizer that makes these codes.
  const std::string& source_of(const std::string& name) const;
  /// The real value of a value of codes, which is read with these parameters.
  const std::string& dequantize(const std::string& name, const QParams& params);
  void alias(const std::string& name, const std::string& other);
  /// origin: the constant of floats from which the codes come.
  void set_codes(const std::string& name, ConstantCodes codes, const std::string& origin);
  /// The constant of floats from which constant codes come; else the name itself.
  const std::string& origin_of(const std::string& name) const;

  /// Adds the constant scale * (codes - zero point), as `output`, and notes its codes. It is named
  /// after the constant `origin` in the file, if that name is free: layers are named after weights.
  void add_weights(const std::string& output,
                   const std::string& origin,
                   const ConstantCodes& codes,
                   const QParams& params);
  /// Adds a constant of floats.
  void add_floats(const std::string& name,
                  const std::vector<int64_t>& dims,
                  const std::vector<float>& values);
  /// The real value of input i of a node, whose scale and zero point are the next two: computed
  /// codes or constant ones. axis: that of several scales.
  std::string operand(const Node& node, size_t i, int axis = 0);
  void add(Node node);
  /// Adds a node as it is. If it moves codes, its outputs have them, too.
  void copy_node(const Node& node);
  /// Notes the dialect, and checks that the node has one output.
  void begin(const Node& node, const char* dialect);
  int64_t opset() const { return model_.opset(); }

 private:
  struct Coded {
    std::string source;
    QParams params;
  };

  /// The value after a ReLU, if it is a sum; else the value itself.
  const std::string& rectified(const std::string& source);
  void rewrite_node(const Node& node);
  /// Computes a node of constants, so that scales may come of it.
  void fold_constants(const Node& node);
  void refuse(const Node& node, const std::string& reason);
  void finish();
  /// Counts elements of constants that are read or made, so that a small file with many nodes that
  /// read the same large constant takes neither memory nor time.
  /// Throws: Refusal if there are too many.
  void spend(int64_t elements);
  /// A free name for the real weights of a constant; empty if there is none.
  std::string name_for(std::string origin);

  const Model& model_;
  FloatGraph result_;
  std::unordered_map<std::string, const StoredTensor*> constants_;
  std::set<std::string> initializers_;
  std::set<std::string> lost_;                      // values that depend on a node that was refused
  std::map<std::string, ElementType> code_inputs_;  // inputs of the network that are codes
  std::set<std::string> sums_;                      // results of products and sums in the new graph
  std::unordered_map<std::string, std::string> rectified_;  // sums after a ReLU, by their names
  std::unordered_map<std::string, Coded> coded_;
  std::unordered_map<std::string, ConstantCodes> constant_codes_;
  std::unordered_map<std::string, std::string> aliases_;
  std::unordered_map<std::string, std::string> origins_;  // of constant codes
  std::unordered_map<std::string, int> readers_;          // of the file's values: their number
  std::set<std::string> replaced_;                        // constants whose names are ours now
  RefusedNodes refused_;
  std::deque<StoredTensor> folded_;  // constants that nodes compute
  FoldBudget fold_budget_;
  int64_t budget_;  // elements of constants that may still be read or made
};

using Rewrite = std::function<void(Rewriter&, const Node&)>;
using RewriteTable = std::map<std::string, Rewrite>;
/// The operators by "domain.type", from qdq.cpp, qoperator.cpp and qonnx.cpp.
const RewriteTable& rewrites();
void add_qdq(RewriteTable& table);
void add_qoperator(RewriteTable& table);
void add_qonnx(RewriteTable& table);

/// Input i of a node; empty if it is absent.
const std::string& input(const Node& node, size_t i);
/// The type that has exactly these codes, if there is one.
std::optional<QType> find_type(int64_t least, int64_t most);
/// Whether two values of codes mean the same, but for the codes that they may have.
bool same_scale(const QParams& a, const QParams& b);
/// For messages: "scale 0.1 zero point 3".
std::string text_of(const QParams& params);

}  // namespace quantrain::onnx
