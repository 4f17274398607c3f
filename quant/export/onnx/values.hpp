#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/integer/program.hpp"
#include "layers/onnx/graph_builder.hpp"

namespace quantrain::onnx_export {

/// How a tensor of the file holds a value of the program: [N, dims...].
struct Form {
  std::vector<int64_t> dims;    ///< of one sample
  bool channels_first = false;  ///< dims are [C, H, W], and the elements lie in this order; else
                                ///< they lie in the program's order, whatever the dims

  friend bool operator==(const Form&, const Form&) = default;
};

/// An image [H, W, C] as ONNX's convolutions and pools take it.
inline Form image_form(int64_t h, int64_t w, int64_t c) {
  return {.dims = {c, h, w}, .channels_first = true};
}
Form form_of(const Shape& shape);

/// The tensors that hold the values of a program. Convolutions want other orders of the elements
/// than linear layers: get() adds the transposes and reshapes that are still missing.
class Values {
 public:
  Values(const integer::Program& program, onnx::GraphBuilder& graph)
      : graph_(graph), held_(program.values.size()) {}

  void set(int id, Form form, std::string name);
  /// y has the elements of x, in the program's order.
  void alias(int x, int y) { held_[static_cast<size_t>(y)] = held_[static_cast<size_t>(x)]; }
  /// The name of a tensor with the value in this form.
  std::string get(int id, const Form& form);
  /// The forms in which there are tensors of the value.
  bool has(int id, const Form& form) const { return find(id, form) != nullptr; }
  const Form& first_form(int id) const& { return held_[static_cast<size_t>(id)].front().form; }

 private:
  struct Held {
    Form form;
    std::string name;
  };
  const Held* find(int id, const Form& form) const;
  std::string add(int id, const Form& form, std::string name);

  onnx::GraphBuilder& graph_;
  std::vector<std::vector<Held>> held_;
};

/// Adds a Reshape to [N, dims...]; `samples` is the first extent: 0 keeps it, -1 computes it.
std::string reshape(onnx::GraphBuilder& graph,
                    const std::string& x,
                    const std::vector<int64_t>& dims,
                    int64_t samples = 0);

}  // namespace quantrain::onnx_export
