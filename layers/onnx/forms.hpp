#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/shape.hpp"
#include "layers/onnx/graph_builder.hpp"

// In which order the tensors of a file that is written hold the elements of our values. `layout` is
// the other direction.
namespace quantrain {

/// In which order images and signals enter and leave a file.
enum class OnnxLayout {
  kChannelsFirst,  ///< [N, C, H, W] and [N, C, L], as in PyTorch
  kChannelsLast,   ///< [N, H, W, C] and [N, L, C], as in this library
};

namespace onnx {

/// How a tensor of the file holds a value of ours: [N, dims...].
struct Form {
  std::vector<int64_t> dims;    ///< of one sample
  bool channels_first = false;  ///< dims are [C, H, W] or [C, L], and the elements lie in this
                                ///< order; else they lie in our order, whatever the dims

  /// With the channels first: the product of the other extents, and the same pixels with other
  /// channels.
  int64_t pixels() const;
  Form with_channels(int64_t channels) const;
  friend bool operator==(const Form&, const Form&) = default;
};

/// A sample of this shape, in our order.
Form form_of(const Shape& sample);
/// An image [H, W, C] as ONNX's convolutions and pools take it.
inline Form image_form(int64_t h, int64_t w, int64_t c) {
  return {.dims = {c, h, w}, .channels_first = true};
}
/// Images and signals with their channels first; all others in our order.
Form channels_first(const Shape& sample);
inline Form end_form(const Shape& sample, OnnxLayout layout) {
  return layout == OnnxLayout::kChannelsFirst ? channels_first(sample) : form_of(sample);
}
/// The dims of a constant for each channel, which broadcasts to values of this form.
std::vector<int64_t> channel_dims(const Form& form, int64_t channels);
/// "input", or "input0", "input1", ... if there are several.
std::string end_name(const std::string& what, size_t i, size_t count);

/// The tensors that hold values, by the numbers of the values. Convolutions want other orders of
/// the elements than linear layers: get() adds the transposes and reshapes that are still missing.
class HeldValues {
 public:
  HeldValues(size_t values, GraphBuilder& graph) : graph_(graph), held_(values) {}

  void set(int id, Form form, std::string name);
  /// y has the elements of x, in our order.
  void alias(int x, int y) { held_[static_cast<size_t>(y)] = held_[static_cast<size_t>(x)]; }
  /// The name of a tensor with the value in this form.
  std::string get(int id, const Form& form);
  /// Whether there is a tensor with the value in this form.
  bool has(int id, const Form& form) const { return find(id, form) != nullptr; }
  /// The form in which the value was computed.
  const Form& first_form(int id) const& { return held_[static_cast<size_t>(id)].front().form; }
  Form first_form(int id) const&& { return held_[static_cast<size_t>(id)].front().form; }
  /// A form with the channels first in which all values are held; else the other one.
  Form common_form(const std::vector<int>& ids, const Form& otherwise) const;

 private:
  struct Held {
    Form form;
    std::string name;
  };
  const Held* find(int id, const Form& form) const;
  std::string add(int id, const Form& form, std::string name);

  GraphBuilder& graph_;
  std::vector<std::vector<Held>> held_;
};

/// Adds a Reshape to [N, dims...]; `samples` is the first extent: 0 keeps it, -1 computes it.
std::string add_reshape(GraphBuilder& graph,
                        const std::string& x,
                        const std::vector<int64_t>& dims,
                        int64_t samples = 0);

}  // namespace onnx
}  // namespace quantrain
